"""Which GPUs run machine code and PTX. Source: the CUDA C++ Programming Guide, sections on compatibility."""

from helpers.cases import cases
from kdoctor.matrix.kernels import Kernels, weakest


def kernels(*cubins: int, ptx: tuple[str, ...] = ()) -> Kernels:
    return Kernels(cubins=cubins, ptx=ptx)


@cases(
    (kernels(80), "8.0", "machine code"),
    (kernels(80), "8.6", "machine code"),
    (kernels(86), "8.0", None),
    (kernels(86), "8.9", "machine code"),
    (kernels(80), "9.0", None),
    (kernels(70, 80), "7.5", "machine code"),
    (kernels(100), "10.3", "machine code"),
    (kernels(100), "12.0", None),
    (kernels(ptx=("80",)), "8.0", "PTX"),
    (kernels(ptx=("80",)), "12.0", "PTX"),
    (kernels(ptx=("80",)), "7.5", None),
    (kernels(ptx=("90a",)), "9.0", "PTX"),
    (kernels(ptx=("90a",)), "10.0", None),
    (kernels(ptx=("100f",)), "10.3", "PTX"),
    (kernels(ptx=("103f",)), "10.7", "PTX"),
    (kernels(ptx=("100f",)), "12.0", None),
    (kernels(ptx=("103f",)), "10.0", None),
    (kernels(ptx=("90a", "80")), "12.0", "PTX"),
    (kernels(80, ptx=("80",)), "8.0", "machine code"),
    (kernels(), "8.0", None),
)
def test_code_that_a_gpu_runs(code: Kernels, capability: str, expected: str | None) -> None:
    assert code.runs_on(capability) == expected


def test_weakest_kind_of_code_decides() -> None:
    machine, ptx, none = kernels(80), kernels(ptx=("80",)), kernels(70)
    assert weakest([machine, machine], "8.0") == "machine code"
    assert weakest([machine, ptx], "8.0") == weakest([ptx, machine], "8.0") == "PTX"
    assert weakest([machine, none], "8.0") is None
    assert weakest([ptx, none], "8.0") is None
    assert weakest([], "8.0") is None
