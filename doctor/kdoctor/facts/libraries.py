"""The libraries that the target's TensorFlow opens for GPUs, and the files that the dynamic loader chooses."""

from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup
from kdoctor.facts.bounds import Reason
from kdoctor.records import record

FoundBy = Literal[
    "LD_PRELOAD", "RPATH", "LD_LIBRARY_PATH", "RUNPATH", "ld.so.cache", "default directory", "not searched"
]
"""How the dynamic loader finds a file, in search order; ``not searched`` is a place outside the search."""

NeededFor = Literal["every GPU", "several GPUs", "profiling", "XLA"]
"""What fails without the library. ``every GPU``: TensorFlow then registers no GPU and trains on the CPU."""


LIBRARY_NAMES = ("cudart", "cublas", "cublasLt", "cufft", "cusolver", "cusparse", "cudnn", "nccl", "cupti")
"""The libraries that a TensorFlow with CUDA opens, except the driver's."""

WHEELS = {
    "cudart": "cuda-runtime", "cublas": "cublas", "cublasLt": "cublas", "cufft": "cufft", "cusolver": "cusolver",
    "cusparse": "cusparse", "cudnn": "cudnn", "nccl": "nccl", "cupti": "cuda-cupti",
}  # fmt: skip
"""Library to its part of the wheel's name, for example ``nvidia-cudnn-cu12`` for CUDA 12."""


@record
class SearchPlace:
    """A folder (or the loader's cache) in the search path."""

    found_by: FoundBy
    path: str
    exists: bool


@record
class LibraryCopy:
    """Another file of the same name, which the loader does not choose."""

    path: str
    found_by: FoundBy
    """The place of the search that contains it; ``not searched`` if there is none."""


@record
class SkippedFile:
    """A file of the right name that the loader skips."""

    path: str
    found_by: FoundBy
    reason: str
    """For example: for another machine, not readable, a broken link."""


@record
class Library:
    """One library that TensorFlow opens by its soname."""

    name: str
    """``cuda`` (the driver's user-space half), ``cudart``, ``cublas``, ``cublasLt``, ``cufft``, ``cusolver``,
    ``cusparse``, ``cudnn``, ``nccl``, ``cupti``."""
    soname: str | None
    """The name that TensorFlow passes to the loader: ``libcudnn.so.9``. None for a built-in library."""
    needed_for: NeededFor
    status: Literal["found", "missing", "unusable", "built-in"]
    """``unusable``: the loader chooses ``path``, fails to load it (see ``load_error``), and looks no further.
    ``built-in``: linked into TensorFlow; an installed library of that name is not used."""
    path: str | None = None
    """The file that the loader chooses, before following links. For cupti it may be ``libcupti.so`` of any CUDA."""
    real_path: str | None = None
    """``path`` with all links followed."""
    found_by: FoundBy | None = None
    load_error: Reason = None
    """Why it cannot be loaded: a damaged file, the loader's message (a missing dependency, an undefined symbol), or how
    the process died. None if it was loaded, and for libcuda, which is never loaded."""
    version: str | None = None
    """From the library's version call: ``12.9`` (cudart), ``12.9.3`` (cublas), ``9.10.2`` (cudnn), ``2.27.7`` (nccl).
    For cuda: the driver's version, from the name of the real file (``535.161.08``). For cupti: its API's number."""
    version_code: int | None = None
    """The number that the version call returned: 12090 (cudart), 91002 (cudnn), 22707 (nccl)."""
    version_error: Reason = None
    """Why the version is unknown, although a file was found."""
    built_with: str | None = None
    """Version of the CUDA runtime that this cuDNN was built with."""
    package: str | None = None
    """The pip distribution that owns the file (normalised name); None if it does not belong to an NVIDIA wheel."""
    package_version: str | None = None
    other_copies: tuple[LibraryCopy, ...] = ()
    """Other files of this soname, in search order; then those outside the search."""
    other_versions: tuple[str, ...] = ()
    """Files of the same library with another soname (``libcudart.so.13``), anywhere."""
    skipped: tuple[SkippedFile, ...] = ()
    """Files of this soname that the loader skips before it chooses ``path`` or fails."""


@record
class FrameworkLibrary:
    """A library that an installed framework would load first in a process."""

    framework: str
    """``TensorFlow``, ``JAX`` or ``torch``."""
    soname: str
    path: str
    """The file, with all links followed."""
    packages: tuple[str, ...] = ()
    """The pip distributions that list the file: ``nvidia-nccl-cu12==2.27.7``."""
    installed_by: str | None = None
    """The only one of them that lists it with its size; None if there is none, or several."""


@record
class XlaFile:
    """A file that XLA searches for when it compiles for a GPU."""

    name: Literal["libdevice", "ptxas"]
    status: Literal["found", "missing"]
    path: str | None = None
    found_by: str | None = None
    """``XLA_FLAGS``, ``PATH``, ``CUDA toolkit``, ``nvidia wheel``, ``TensorFlow's folder``, ``conda environment`` or
    ``working folder``."""
    package: str | None = None
    """The pip distribution that owns the file."""
    package_version: str | None = None
    other_copies: tuple[str, ...] = ()
    """Other copies, in search order."""
    searched: tuple[str, ...] = ()
    """Every path that XLA tries, in order, if the file is missing."""


@record
class Libraries(FactGroup):
    """The libraries that the installed TensorFlow opens, and the files that the loader finds. CUDA is not initialised.

    The group is unavailable without TensorFlow, and for a build of unknown kind.
    """

    group: ClassVar[str] = "libraries"

    cuda_build: bool
    """Whether this TensorFlow opens CUDA libraries."""
    note: str | None = None
    """For a build without CUDA: why no libraries are listed."""
    opener: str | None = None
    """The file of TensorFlow whose search path applies (``libtensorflow_framework.so.2``)."""
    path_kind: Literal["RUNPATH", "RPATH"] | None = None
    """The kind of its search path: RUNPATH comes after LD_LIBRARY_PATH, RPATH before it. None without one."""
    runpath: tuple[str, ...] = ()
    """The folders of that path as in the file, without duplicates: ``$ORIGIN/../nvidia/cudnn/lib``."""
    searched: tuple[SearchPlace, ...] = ()
    """Every place of the loader's search, in order; common to all libraries."""
    libraries: tuple[Library, ...] = ()
    """In the order in which TensorFlow opens them, the driver's first."""
    frameworks: tuple[FrameworkLibrary, ...] = ()
    """What each installed framework loads, TensorFlow first. glibc keeps one library for each soname and process."""
    xla_files: tuple[XlaFile, ...] = ()
    driver_version: str | None = None
    """The driver's user-space version, from the name of the real libcuda file. None if the name has none (WSL)."""
    driver_is_compat: bool | None = None
    """Whether libcuda is in a forward compatibility folder (``compat``). None without libcuda."""

    def find(self, name: str) -> Library | None:
        """The library of that name, or None if this build does not open it."""
        return next((library for library in self.libraries if library.name == name), None)

    def lacking(self, needed_for: NeededFor = "every GPU") -> tuple[Library, ...]:
        """The libraries for that purpose that cannot be loaded."""
        wanted = (library for library in self.libraries if library.needed_for == needed_for)
        return tuple(library for library in wanted if library.status in {"missing", "unusable"} or library.load_error)
