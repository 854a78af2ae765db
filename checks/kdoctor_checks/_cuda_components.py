"""The CUDA release that a component belongs to, by its version. Only components of CUDA 12 are known.

Source: "CUDA Component Versions" in the release notes of each CUDA toolkit 12 (https://docs.nvidia.com/cuda/archive/).
"""

from kdoctor_checks._versions import numbers

_FIRST_OF = {
    "cufft": {"11.0.0": "12.0", "11.0.2": "12.1", "11.0.8": "12.2", "11.0.12": "12.3", "11.2.0": "12.4",
              "11.2.3": "12.5", "11.2.6": "12.6", "11.3.3": "12.8", "11.4.0": "12.9"},
    "cusolver": {"11.4.2": "12.0", "11.4.4": "12.1", "11.5.0": "12.2", "11.5.3": "12.3", "11.6.0": "12.4",
                 "11.6.2": "12.5", "11.6.4": "12.6", "11.7.2": "12.8", "11.7.4": "12.9"},
    "cusparse": {"12.0.0": "12.0", "12.0.2": "12.1", "12.1.1": "12.2", "12.1.3": "12.3", "12.3.0": "12.4",
                 "12.4.1": "12.5", "12.5.2": "12.6", "12.5.7": "12.8", "12.5.9": "12.9"},
}  # fmt: skip
"""Component to its first version in each CUDA release, in ascending order."""

_NUMBERED_AS_CUDA = frozenset({"cudart", "cublas", "cublasLt"})
"""Components that have the major and minor version of CUDA."""


def cuda_release(component: str, version: str | None) -> str | None:
    """The CUDA release (``12.9``) that a version of a component belongs to; None if it is not known."""
    found = numbers(version)
    if found is None or len(found) < 2:  # noqa: PLR2004 - major and minor
        return None
    if component in _NUMBERED_AS_CUDA:
        return f"{found[0]}.{found[1]}"
    firsts = [(numbers(first) or (), release) for first, release in _FIRST_OF.get(component, {}).items()]
    # The next major of a component belongs to the next major of CUDA, which is not in the table.
    fitting = [release for first, release in firsts if first <= found and first[:1] == found[:1]]
    return fitting[-1] if fitting else None
