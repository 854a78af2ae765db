"""The libraries that the target's TensorFlow would open for its GPUs, and the files that the loader would take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup

FoundBy = Literal[
    "LD_PRELOAD", "RPATH", "LD_LIBRARY_PATH", "RUNPATH", "ld.so.cache", "default directory", "not searched"
]
"""How the dynamic loader comes to a file, in the order of its search; ``not searched`` is where it never looks."""

NeededFor = Literal["every GPU", "several GPUs", "profiling", "XLA"]
"""What fails without it. ``every GPU``: TensorFlow then registers no GPU at all and trains on the CPU."""


LIBRARY_NAMES = ("cudart", "cublas", "cublasLt", "cufft", "cusolver", "cusparse", "cudnn", "nccl", "cupti")
"""The libraries that a TensorFlow with CUDA opens, without the driver's."""

WHEELS = {
    "cudart": "cuda-runtime", "cublas": "cublas", "cublasLt": "cublas", "cufft": "cufft", "cusolver": "cusolver",
    "cusparse": "cusparse", "cudnn": "cudnn", "nccl": "nccl", "cupti": "cuda-cupti",
}  # fmt: skip
"""Library to the middle of its wheel's name, which is ``nvidia-cudnn-cu12`` for CUDA 12."""


@dataclass(frozen=True, kw_only=True)
class SearchPlace:
    """A folder (or the loader's cache) that is searched."""

    found_by: FoundBy
    path: str
    exists: bool


@dataclass(frozen=True, kw_only=True)
class LibraryCopy:
    """Another file of the same name, which the loader would not take."""

    path: str
    found_by: FoundBy
    """The place of the search that it lies in; ``not searched`` where the loader never looks there."""


@dataclass(frozen=True, kw_only=True)
class SkippedFile:
    """A file of the right name that the loader passes over."""

    path: str
    found_by: FoundBy
    reason: str
    """For another machine, not readable, a broken link."""


@dataclass(frozen=True, kw_only=True)
class Library:
    """One library that TensorFlow opens by its soname."""

    name: str
    """``cuda`` (the driver's user-space half), ``cudart``, ``cublas``, ``cublasLt``, ``cufft``, ``cusolver``,
    ``cusparse``, ``cudnn``, ``nccl``, ``cupti``."""
    soname: str | None
    """The name that TensorFlow hands to the loader: ``libcudnn.so.9``. None for a built-in library."""
    needed_for: NeededFor
    status: Literal["found", "missing", "unusable", "built-in"]
    """``unusable``: the loader takes ``path`` and cannot load it, see ``load_error`` (it looks no further then).
    ``built-in``: linked into TensorFlow; what is installed under that name does not matter to it."""
    path: str | None = None
    """The file that the loader takes, its own link not followed. For cupti it may be ``libcupti.so``, of any CUDA."""
    real_path: str | None = None
    """The same with all links followed."""
    found_by: FoundBy | None = None
    load_error: str | None = None
    """Why it cannot be loaded: what is wrong with the file, or the loader's own words (a missing dependency, an
    undefined symbol), or how the process died. None where it was loaded, and for libcuda, which is never loaded."""
    version: str | None = None
    """By its own version call: ``12.9`` (cudart), ``12.9.3`` (cublas), ``9.10.2`` (cudnn), ``2.27.7`` (nccl). For cuda:
    the driver's version, from the real file's name (``535.161.08``). For cupti: its API's number."""
    version_code: int | None = None
    """The number that the call gave, as it gave it: 12090 (cudart), 91002 (cudnn), 22707 (nccl)."""
    version_error: str | None = None
    """Why there is no version, though there is a file."""
    built_with: str | None = None
    """The version of the CUDA runtime that this cuDNN was built with."""
    package: str | None = None
    """The pip distribution that owns the file (normalised name); None where no NVIDIA wheel on the path does."""
    package_version: str | None = None
    other_copies: tuple[LibraryCopy, ...] = ()
    """More files of this soname, in the order of the search; then those that the loader never looks at."""
    other_versions: tuple[str, ...] = ()
    """Files of the same library under another soname (``libcudart.so.13``), wherever they lie."""
    skipped: tuple[SkippedFile, ...] = ()
    """Files of this soname that the loader passes over before it takes ``path``, or before it gives up."""


@dataclass(frozen=True, kw_only=True)
class XlaFile:
    """A file that XLA looks for when it compiles for a GPU."""

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
    """More of them, in the order of the search."""
    searched: tuple[str, ...] = ()
    """Every path that is tried, in order, where it is missing."""


@dataclass(frozen=True, kw_only=True)
class Libraries(FactGroup):
    """What the installed TensorFlow build would open, and what the loader would give it. CUDA is not initialised.

    A build whose kind cannot be read, and an absent TensorFlow, make this group unavailable.
    """

    group: ClassVar[str] = "libraries"

    cuda_build: bool
    """Whether this TensorFlow opens CUDA libraries at all."""
    note: str | None = None
    """For a build without CUDA: why there is nothing to look for."""
    opener: str | None = None
    """The file of TensorFlow whose search path counts (``libtensorflow_framework.so.2``)."""
    path_kind: Literal["RUNPATH", "RPATH"] | None = None
    """Its kind of search path. RUNPATH comes after LD_LIBRARY_PATH, RPATH before it. None: it has none."""
    runpath: tuple[str, ...] = ()
    """That path's folders as the file has them, without repetitions: ``$ORIGIN/../nvidia/cudnn/lib``."""
    searched: tuple[SearchPlace, ...] = ()
    """Every place of the loader's search, in order; the same for all libraries."""
    libraries: tuple[Library, ...] = ()
    """In the order in which TensorFlow opens them; the driver's first."""
    xla_files: tuple[XlaFile, ...] = ()
    driver_version: str | None = None
    """The driver's user-space version, from the name of the real libcuda file. None where that name has none (WSL)."""
    driver_is_compat: bool | None = None
    """Whether that libcuda lies in a folder for forward compatibility (``compat``). None without a libcuda."""

    def find(self, name: str) -> Library | None:
        """The library of that name, or None if this build does not open it."""
        return next((library for library in self.libraries if library.name == name), None)

    def lacking(self, needed_for: NeededFor = "every GPU") -> tuple[Library, ...]:
        """Those that it needs for that purpose and cannot load, by what was seen."""
        wanted = (library for library in self.libraries if library.needed_for == needed_for)
        return tuple(library for library in wanted if library.status in {"missing", "unusable"} or library.load_error)
