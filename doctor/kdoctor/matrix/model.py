"""The version matrix as values: which TensorFlow was built for what, and what is known to go wrong.

Pure data, immutable, with the look-ups that need no judgement. :mod:`kdoctor.matrix.load` reads it from files,
:mod:`kdoctor.matrix.compatibility` judges a machine by it, and checks ask for it as they ask for facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

Linkage = Literal["static", "dynamic"]
Effect = Literal["not-installable", "no-gpu", "crash", "wrong-results", "unproven"]
EFFECTS: tuple[Effect, ...] = ("not-installable", "no-gpu", "crash", "wrong-results", "unproven")
"""What a known-bad combination does: it cannot be installed; it finds no GPU; it stops with an error; it trains or
reports wrongly; nobody has shown that it works."""

Sources = tuple[str, ...]
"""Where a row is from, in words."""


def numbers(text: str) -> tuple[int, ...]:
    """A dotted version as integers, for comparing: ``535.161.08`` is 535, 161, 8.

    Raises:
        ValueError: it is none.
    """
    parts = text.split(".")
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise ValueError(f"{text!r} is no dotted version")
    return tuple(int(part) for part in parts)


@cache
def specifier(text: str) -> SpecifierSet:
    """A version specifier (PEP 440); each text is parsed once."""
    return SpecifierSet(text)


@cache
def parse_requirement(text: str) -> Requirement:
    """A requirement (PEP 508); each text is parsed once, so it must not be changed."""
    return Requirement(text)


@dataclass(frozen=True, kw_only=True)
class Nccl:
    """The NCCL of a release."""

    linkage: Linkage
    """``static``: inside TensorFlow, so an installed NCCL is not used; ``dynamic``: opened when TensorFlow needs it."""
    version: str | None
    """The version inside, or for ``dynamic`` the range that is asked for; None where nobody measured it."""
    basis: str
    """``measured``, or what it was inferred from."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """One TensorFlow release: its Linux x86-64 wheel."""

    version: str
    """As the index names it: ``2.15.0.post1``."""
    distribution: str
    """``tensorflow`` or ``tf-nightly``."""
    python: str
    """The Python versions that it has wheels for, as a specifier."""
    requires: tuple[str, ...]
    """What it asks of Keras, NumPy, protobuf and others (PEP 508), as its METADATA does."""
    and_cuda: tuple[str, ...] | None
    """What its extra ``[and-cuda]`` adds; None: it has no such extra, the libraries must come from elsewhere."""
    cuda: str
    """CUDA release that it was built against: ``12.5.1``, or ``12.2`` where the build does not say more."""
    cudnn: str | None
    """cuDNN release that it was built against, ``major.minor``; None where the build no longer says."""
    cubins: tuple[int, ...]
    """Architectures that it holds machine code for: 80 is sm_80."""
    ptx: tuple[int, ...]
    """Architectures whose intermediate code (PTX) it holds: 90 is compute_90."""
    nccl: Nccl
    glibc: str
    """The oldest C library that the wheel may be installed beside."""
    runpath: tuple[str, ...]
    """Folders of ``site-packages/nvidia`` in which libtensorflow_framework looks for libraries by itself."""
    note: str | None
    inferred_from: str | None
    """The release that what was not read of this one is taken from."""
    verified: str | None
    """When it was held against the real wheel, and what of it."""
    source: Sources

    @cached_property
    def key(self) -> Version:
        """The version, for comparing."""
        return Version(self.version)

    @property
    def prerelease(self) -> bool:
        """Whether it is a nightly or another pre-release: never advised."""
        return self.key.is_prerelease

    def requirement(self, name: str, python: str | None = None) -> Requirement | None:
        """What it or its extra asks of a distribution; the first where several hold and no Python is named."""
        for line in (*self.requires, *(self.and_cuda or ())):
            requirement = parse_requirement(line)
            if requirement.name.replace("_", "-").lower() != name:
                continue
            if python is None or requirement.marker is None or requirement.marker.evaluate({"python_version": python}):
                return requirement
        return None


@dataclass(frozen=True, kw_only=True)
class CudaMajor:
    """The oldest driver that runs programs of any release of this major (minor-version compatibility)."""

    major: int
    oldest_driver: str
    source: Sources


@dataclass(frozen=True, kw_only=True)
class CudaRelease:
    """A CUDA toolkit and the driver that came with it."""

    release: str
    """``12.5.1``."""
    driver: str | None
    """Its own driver, which compiles its PTX; None where that is not known."""
    source: Sources


@dataclass(frozen=True, kw_only=True)
class CudnnSupport:
    """What some releases of cuDNN support."""

    versions: str
    """Which releases, as a specifier."""
    cuda: int
    """Major release of CUDA that they are built for."""
    capabilities: str
    """The compute capabilities that they have code for, as a specifier."""
    oldest_driver: str | None
    source: Sources


@dataclass(frozen=True, kw_only=True)
class GpuKind:
    """GPUs of one compute capability."""

    capability: str
    """``8.6``."""
    architecture: str
    models: tuple[str, ...]
    """Names, and patterns of names (``RTX 30[5-9]0``), as the driver spells them without brand words."""
    arm_models: tuple[str, ...]
    """Those that only come with an Arm processor, for which TensorFlow's wheels are CPU builds."""
    oldest_driver: str | None
    """The first driver that knows them, where a source says so."""
    last_branch: int | None
    """The last driver branch that supports them, where it has ended."""
    source: Sources

    @property
    def number(self) -> int:
        """86 for 8.6, as architectures are named in builds."""
        major, minor = numbers(self.capability)
        return major * 10 + minor


@dataclass(frozen=True, kw_only=True)
class Libraries:
    """The libraries that builds of some CUDA or cuDNN major open by name."""

    cuda: int | None
    """Only builds for this major of CUDA; None: any."""
    cudnn: int | None
    """Only builds for this major of cuDNN; None: any."""
    nccl: Linkage | None
    """Only builds that link NCCL so; None: any."""
    sonames: Mapping[str, str]
    """``cudart``: ``libcudart.so.12``."""
    source: Sources


@dataclass(frozen=True, kw_only=True)
class KerasBehaviour:
    """What some releases of Keras do over several replicas."""

    versions: str
    """Which releases, as a specifier."""
    weights: Literal["right", "wrong"]
    """Whether even batches give the weights of a single device."""
    reported: Literal["right", "wrong"]
    """Whether the loss and the metrics that it reports are right."""
    ragged: str
    """What an uneven final batch does."""
    empty_replica: str
    """What a final batch does that leaves a replica without examples, with BatchNormalization."""
    source: Sources


@dataclass(frozen=True, kw_only=True)
class KnownBad:
    """A combination of versions that is known to go wrong."""

    id: str
    """The failure's id; two rows may tell of one failure at different versions."""
    when: Mapping[str, str]
    """Distribution (``tensorflow``, ``keras``, ``nvidia-cudnn-cu12``), or ``cudnn``, ``capability``, ``python``, to the
    bad versions as a specifier; all must hold."""
    job: str | None
    """What it takes besides, in the job itself or in the environment; None: nothing."""
    effect: Effect
    symptom: str
    """What people see."""
    ended_by: Mapping[str, str]
    """The versions that end it; empty: none is known."""
    install: tuple[str, ...]
    """Requirements to add to an install command, so that it cannot resolve to the bad combination."""
    fix: str
    source: Sources


@dataclass(frozen=True, kw_only=True)
class VersionMatrix:
    """Everything that the matrix knows."""

    name: str
    """Where it was read from: ``shipped``, or the files."""
    updated: str
    """The day on which it was last held against the world."""
    platform: str
    """The platform that its wheels are for: ``linux-x86_64``."""
    releases: tuple[Release, ...]
    """Oldest first."""
    cuda_majors: tuple[CudaMajor, ...]
    cuda_releases: tuple[CudaRelease, ...]
    """Oldest first."""
    cudnn: tuple[CudnnSupport, ...]
    gpus: tuple[GpuKind, ...]
    """By rising capability."""
    libraries: tuple[Libraries, ...]
    registering: tuple[str, ...]
    """The libraries without any of which TensorFlow registers no GPU at all."""
    keras: tuple[KerasBehaviour, ...]
    known_bad: tuple[KnownBad, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    """Short names of sources to the citation."""

    def release(self, version: str) -> Release | None:
        """The release of exactly that version."""
        return next((release for release in self.releases if release.version == version), None)

    def capability(self, capability: str) -> GpuKind | None:
        """The GPUs of that compute capability."""
        return next((kind for kind in self.gpus if kind.capability == capability), None)

    def oldest_driver(self, cuda: str) -> str | None:
        """The oldest driver that runs programs of that CUDA release; None for a major that is not known."""
        major = numbers(cuda)[0]
        return next((row.oldest_driver for row in self.cuda_majors if row.major == major), None)

    def ptx_drivers(self, cuda: str) -> tuple[str, str] | None:
        """The drivers from which PTX of that CUDA release may, and surely does, compile; None where not known.

        They differ where the build says a minor release only, such as ``12.2``: then they are those of its first
        and of its last patch.
        """
        wanted = numbers(cuda)
        drivers = [row.driver for row in self.cuda_releases if numbers(row.release)[: len(wanted)] == wanted]
        known = sorted((driver for driver in drivers if driver is not None), key=numbers)
        return (known[0], known[-1]) if known and len(known) == len(drivers) else None

    def sonames(self, release: Release) -> dict[str, str]:
        """The libraries that a release opens, short name to the file that it asks the loader for."""
        cuda = numbers(release.cuda)[0]
        cudnn = self.cudnn_major(release)
        found: dict[str, str] = {}
        for row in self.libraries:
            if row.cuda in (None, cuda) and row.cudnn in (None, cudnn) and row.nccl in (None, release.nccl.linkage):
                found |= row.sonames
        return found

    def cudnn_major(self, release: Release) -> int | None:
        """The major of cuDNN that a release was built against, or at least asks for."""
        if release.cudnn is not None:
            return numbers(release.cudnn)[0]
        requirement = cudnn_requirement(release)
        floors = [Version(item.version).major for item in requirement.specifier] if requirement else []
        return min(floors, default=None)

    def keras_behaviour(self, version: str) -> KerasBehaviour | None:
        """What a release of Keras does over several replicas; None where nobody measured it."""
        fitting = (row for row in self.keras if specifier(row.versions).contains(version, prereleases=True))
        return next(fitting, None)

    def known_bad_for(self, versions: Mapping[str, str]) -> Iterator[KnownBad]:
        """The known-bad combinations that these versions are surely in.

        Args:
            versions: what is there: ``{"tensorflow": "2.21.0", "cudnn": "9.5.1", "capability": "7.0"}``. A row that
                asks about anything else is left out.

        Raises:
            packaging.version.InvalidVersion: one of them is no version.
        """
        for row in self.known_bad:
            if all(
                name in versions and specifier(spec).contains(versions[name], prereleases=True)
                for name, spec in row.when.items()
            ):
                yield row


def cudnn_requirement(release: Release) -> Requirement | None:
    """What the release's ``[and-cuda]`` asks of cuDNN."""
    for line in release.and_cuda or ():
        if line.startswith("nvidia-cudnn-"):
            return parse_requirement(line)
    return None


def code_for(cubins: Sequence[int], ptx: Sequence[int], capability: str) -> Literal["machine code", "PTX"] | None:
    """By what a GPU of that compute capability runs a build with that code; None: the build holds none for it.

    Machine code runs on GPUs of its own major capability that are not older, PTX on all that are not older.
    """
    major, minor = numbers(capability)
    number = major * 10 + minor
    if any(cubin // 10 == major and cubin <= number for cubin in cubins):
        return "machine code"
    return "PTX" if any(architecture <= number for architecture in ptx) else None


def python_minors(text: str) -> tuple[str, ...]:
    """The minor releases of Python 3 that a specifier admits, oldest first: ``3.9``, ``3.10``, ..."""
    wanted = specifier(text)
    return tuple(minor for minor in (f"3.{number}" for number in range(6, 30)) if wanted.contains(minor))
