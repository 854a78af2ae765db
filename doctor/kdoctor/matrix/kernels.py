"""The GPU code of a build, and the GPUs that it runs on."""

from collections.abc import Sequence

from kdoctor.matrix.values import Architectures, CodeKind, Dotted, Targets, numbers
from kdoctor.yamldoc.validation import StrictPart


class Kernels(StrictPart):
    """GPU code that was built together: every kernel of it has code for the same GPUs."""

    cubins: Architectures
    """Architectures that it has machine code for: 80 is sm_80."""
    ptx: Targets
    """Architectures that it has intermediate code (PTX) for: ``90``, or ``90a`` for code that only 9.0 compiles."""
    ptx_isa: Dotted | None = None
    """Version of the PTX language, which decides about the driver; None for that of the build's CUDA."""

    def runs_on(self, capability: str) -> CodeKind | None:
        """The kind of code that a GPU of that compute capability runs; None if there is none.

        Machine code runs on GPUs of the same major capability and the same or a newer minor, PTX on all newer GPUs.
        PTX for a specific architecture (``90a``) runs on no other, and for a family (``100f``) within its major.
        """
        major, minor = numbers(capability)
        number = major * 10 + minor
        if any(cubin // 10 == major and cubin <= number for cubin in self.cubins):
            return "machine code"
        return "PTX" if any(_compiles(target, number) for target in self.ptx) else None


def _compiles(target: str, number: int) -> bool:
    least = int(target.rstrip("af"))
    if target.endswith("a"):
        return least == number
    return least <= number and (not target.endswith("f") or least // 10 == number // 10)


def weakest(kernels: Sequence[Kernels], capability: str) -> CodeKind | None:
    """The kind of code that a GPU needs for all these kernels; None if it has none for some of them."""
    kinds = [each.runs_on(capability) for each in kernels]
    return None if None in kinds or not kinds else "PTX" if "PTX" in kinds else "machine code"
