"""Helpers for checks of the libraries that TensorFlow opens."""

from kdoctor.facts import Libraries, Library, TensorFlowBuild
from kdoctor.matrix.model import Release
from kdoctor.matrix.values import parse_requirement


def cuda_libraries(libraries: Libraries) -> tuple[Library, ...]:
    """The libraries without which TensorFlow registers no GPU, except the driver's."""
    return tuple(item for item in libraries.libraries if item.needed_for == "every GPU" and item.name != "cuda")


def outside_search(library: Library) -> str | None:
    """The folder of a missing library's copy in the NVIDIA wheels that the loader does not search."""
    if library.status != "missing":
        return None
    found = (copy.path for copy in library.other_copies if copy.found_by == "not searched" and "/nvidia/" in copy.path)
    path = next(found, None)
    return path.rpartition("/")[0] if path else None


def version_of(library: Library) -> str:
    """``9.10.2 (nvidia-cudnn-cu12 9.10.2.21)``."""
    owner = f" ({library.package} {library.package_version})" if library.package else ""
    return f"{library.version or '(version unknown)'}{owner}"


def shown(library: Library) -> str:
    """``libcudnn.so.9 9.10.2 (nvidia-cudnn-cu12 9.10.2.21)``."""
    return f"{library.soname or library.name} {version_of(library)}"


def with_libraries(tensorflow: TensorFlowBuild, release: Release | None) -> str:
    """The requirement for the build together with its NVIDIA libraries."""
    version = f"=={tensorflow.version}" if tensorflow.version else ""
    has_extra = release is None or release.and_cuda is not None
    return f"{tensorflow.distribution or 'tensorflow'}{'[and-cuda]' if has_extra else ''}{version}"


def pinned(release: Release | None, package: str) -> str | None:
    """The oldest version of that NVIDIA wheel that the release's ``[and-cuda]`` accepts, as a requirement."""
    for line in (release.and_cuda or ()) if release else ():
        requirement = parse_requirement(line)
        floors = [item.version for item in requirement.specifier if item.operator in {"==", ">="}]
        if requirement.name == package and floors:
            return f"{package}=={floors[0]}"
    return None
