"""The version matrix as values: what each TensorFlow release was built for, and what is known to fail.

Immutable, with lookups but no judgement. The rows validate themselves; :mod:`kdoctor.matrix.load` reads them from
files. :mod:`kdoctor.matrix.compatibility` judges a machine with them, and checks request the matrix like facts.
"""
# ruff: noqa: RUF012 - pydantic copies the defaults

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Annotated, Any, Literal

from packaging.requirements import Requirement
from packaging.version import Version
from pydantic import AfterValidator, Field

from kdoctor.matrix.cuda import (
    CudaMajor,
    CudaRelease,
    CudnnSupport,
    Earlier,
    ForwardCompatibility,
    PtxVersion,
    windows_drivers,
)
from kdoctor.matrix.keras import KerasFeature, KerasRelease, KnownFeature, MeasuredFeature, known_feature
from kdoctor.matrix.kernels import Kernels
from kdoctor.matrix.values import (
    Architectures,
    Capability,
    Dotted,
    Positive,
    Requirements,
    Sources,
    SpecifierText,
    Targets,
    Text,
    Texts,
    VersionText,
    meets,
    numbers,
    parse_requirement,
)
from kdoctor.records import record
from kdoctor.yamldoc.validation import StrictPart

Framework = Literal["TensorFlow", "JAX"]
Linkage = Literal["static", "dynamic"]
Effect = Literal["not-installable", "no-gpu", "crash", "wrong-results", "unproven"]
"""What a known-bad combination does: it cannot be installed; it finds no GPU; it raises an error; it trains or reports
incorrectly; it has not been shown to work."""

_SHORT_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Nccl(StrictPart):
    """The NCCL of a release."""

    linkage: Linkage
    """``static``: inside TensorFlow, which ignores an installed NCCL; ``dynamic``: loaded when TensorFlow needs it."""
    version: Text | None = None
    """The version inside, or the requested range for ``dynamic``; None if it was not measured."""
    basis: Text
    """``measured``, or what it was inferred from."""


class Release(StrictPart):
    """One TensorFlow release: its Linux x86-64 wheel."""

    version: VersionText
    """As the package index names it: ``2.15.0.post1``."""
    distribution: Text = "tensorflow"
    """``tensorflow``, ``tf-nightly`` or ``jax``."""
    extra: Text = "and-cuda"
    """The extra that installs the NVIDIA wheels: ``cuda12`` for JAX."""
    python: SpecifierText
    """The Python versions that it has wheels for."""
    free_threaded: SpecifierText | None = None
    """The Python versions whose free-threaded builds (3.14t) it has wheels for; None for none."""
    requires: Requirements
    """What it requires of Keras, NumPy, protobuf and others, from its METADATA."""
    and_cuda: Annotated[Requirements | None, AfterValidator(lambda lines: lines or None)] = None
    """What that extra adds; None if it has no such extra."""
    cuda: Dotted
    """CUDA release that it was built with: ``12.5.1``, or ``12.2`` if the build does not say more."""
    cudnn: Dotted | None = None
    """cuDNN release that it was built with, ``major.minor``; None if the build does not say."""
    cubins: Architectures
    """Architectures that its compiled kernels have machine code for: 80 is sm_80."""
    ptx: Targets
    """Architectures that its compiled kernels have intermediate code (PTX) for: 90 is compute_90."""
    ptx_isa: Dotted | None = None
    """Version of that PTX; None for that of its CUDA."""
    kernel_gen: Kernels | None = None
    """The kernels of TensorFlow's kernel generator; None if they have the same code as the compiled ones."""
    nccl: Nccl
    glibc: Dotted
    """The oldest C library that the wheel supports."""
    tf_keras: VersionText | None = None
    """The newest tf-keras, which requires the same minor release; None if it needs none or has none."""
    runpath: Texts
    """Folders of ``site-packages/nvidia`` that libtensorflow_framework searches for libraries."""
    note: Text | None = None
    inferred_from: Annotated[VersionText | None, Field(validation_alias="same_as")] = None
    """The release that provides the values that were not read from this one."""
    verified: Text | None = None
    """When it was compared with the real wheel, and which parts."""
    source: Sources

    @cached_property
    def key(self) -> Version:
        """The version, for comparing."""
        return Version(self.version)

    @cached_property
    def kernels(self) -> tuple[Kernels, ...]:
        """All its GPU code."""
        compiled = Kernels(cubins=self.cubins, ptx=self.ptx, ptx_isa=self.ptx_isa)
        return (compiled, self.kernel_gen) if self.kernel_gen else (compiled,)

    @property
    def prerelease(self) -> bool:
        """Whether it is a nightly or another pre-release, which is never recommended."""
        return self.key.is_prerelease

    def requirement(self, name: str, python: str | None = None) -> Requirement | None:
        """What it or its extra requires of a distribution; the first match if several apply and no Python is given."""
        for line in (*self.requires, *(self.and_cuda or ())):
            requirement = parse_requirement(line)
            if requirement.name.replace("_", "-").lower() != name:
                continue
            if python is None or requirement.marker is None or requirement.marker.evaluate({"python_version": python}):
                return requirement
        return None


class GpuKind(StrictPart):
    """GPUs of one compute capability."""

    capability: Capability
    """``8.6``."""
    architecture: Text
    data_center: Texts = ()
    """Models of NVIDIA's data-center lists, on which the package cuda-compat works."""
    models: Texts = ()
    """Other models. Names, and patterns of names (``RTX 30[5-9]0``), as the driver spells them without the brand."""
    arm_models: Texts = ()
    """Models that only come with an Arm processor, for which TensorFlow's wheels are CPU builds."""
    embedded: bool = False
    """Whether they are parts of Jetson modules, whose CUDA libraries come with JetPack.

    Machine code of another capability does not run on them.
    """
    server_cuda: Positive | None = None
    """The first major release of CUDA whose libraries for Arm servers run on them too."""
    oldest_driver: Dotted | None = None
    """The first driver that supports them, if a source names it."""
    last_branch: Positive | None = None
    """The last driver branch that supports them, if support has ended."""
    source: Sources

    @property
    def names(self) -> tuple[str, ...]:
        """All models, the known ones first."""
        return (*self.data_center, *self.models, *self.arm_models)

    @property
    def arm_only(self) -> bool:
        """Whether all models only come with an Arm processor."""
        return not self.data_center and not self.models

    @property
    def number(self) -> int:
        """86 for 8.6, as builds name architectures."""
        major, minor = numbers(self.capability)
        return major * 10 + minor


class Platform(StrictPart):
    """A platform other than the matrix's own, and what a framework's wheels can do there."""

    platform: Text
    """``windows``."""
    framework: Framework = "TensorFlow"
    """The framework that it is about."""
    wheels: SpecifierText
    """The releases with a wheel for it."""
    lacks: dict[str, SpecifierText] = {}
    """Of some releases, the Python versions that have no wheel on this platform alone."""
    gpu: SpecifierText | None = None
    """The releases whose wheels use its NVIDIA GPUs; None if there are none."""
    windows_driver: bool = False
    """Whether its driver is the one for Windows, whose versions differ after the branch."""
    advice: Texts = ()
    """How to use a GPU there; each ends in a command if there is one."""
    source: Sources


class Libraries(StrictPart):
    """The libraries that builds for some CUDA or cuDNN major load by name. None matches any build."""

    cuda: Positive | None = None
    """Only builds for this major of CUDA."""
    cudnn: Positive | None = None
    """Only builds for this major of cuDNN."""
    nccl: Linkage | None = None
    """Only builds that link NCCL this way."""
    sonames: dict[str, Text]
    """``cudart``: ``libcudart.so.12``."""
    source: Sources


class KnownBad(StrictPart):
    """A combination of versions that is known to fail."""

    id: Text
    """The id of the failure; two rows may describe one failure at different versions."""
    when: dict[str, SpecifierText]
    """Distribution (``tensorflow``, ``keras``, ``nvidia-cudnn-cu12``), or ``cudnn``, ``capability``, ``python``, to the
    bad versions. All must match."""
    job: Text | None = None
    """What else it takes, in the job or in the environment; None if nothing."""
    extra_only: bool = False
    """Whether only the extra with the NVIDIA wheels fails; the release itself runs with the system's libraries."""
    effect: Effect
    symptom: Text
    """What users see."""
    ended_by: dict[str, SpecifierText] = {}
    """The versions that fix it; empty if none is known."""
    install: Requirements = ()
    """Requirements for an install command, so that it cannot resolve to the bad combination."""
    fix: Text
    source: Sources


_OLD_DAYS = 90
"""TensorFlow has a release every three to four months."""


@record
class VersionMatrix:
    """The whole matrix."""

    name: str
    """Where it was read from: shipped, or the files."""
    updated: str
    """The day of the last review."""
    platform: str
    """The platform that its wheels are for: ``linux-x86_64``."""
    releases: tuple[Release, ...]
    """Oldest first."""
    jax: tuple[Release, ...] = ()
    """The releases of JAX, with each of their CUDA plugins."""
    framework: Framework = "TensorFlow"
    """What ``releases`` are of."""
    of_windows: bool = False
    """Whether its drivers are those of Windows, as in WSL2."""
    cuda_majors: tuple[CudaMajor, ...]
    cuda_releases: tuple[CudaRelease, ...]
    """Oldest first."""
    ptx_versions: tuple[PtxVersion, ...]
    earlier: tuple[Earlier, ...] = ()
    """Oldest first."""
    cudnn: tuple[CudnnSupport, ...]
    gpus: tuple[GpuKind, ...]
    """By rising capability."""
    platforms: tuple[Platform, ...]
    forward_compatibility: tuple[ForwardCompatibility, ...]
    """Oldest first."""
    libraries: tuple[Libraries, ...]
    registering: tuple[str, ...]
    """The libraries that TensorFlow needs to register any GPU."""
    features: Mapping[str, MeasuredFeature] = field(default_factory=dict)
    """The measured features of jobs, by name."""
    keras_releases: tuple[KerasRelease, ...] = ()
    keras_features: tuple[KerasFeature, ...] = ()
    """In the order of the files: of two rows about a release and a feature, the later one counts."""
    known_bad: tuple[KnownBad, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    """Short names of sources to citations."""

    def of(self, framework: str) -> VersionMatrix:
        """The matrix with the releases of ``jax``, or itself for ``tensorflow``."""
        return replace(self, releases=self.jax, framework="JAX") if framework == "jax" else self

    def citation(self, source: str) -> str | None:
        """The text of a source: its citation if it is a short name; None for a short name that is not listed."""
        return self.sources.get(source) if _SHORT_NAME.fullmatch(source) else source

    def release(self, version: str) -> Release | None:
        """The release of exactly that version."""
        return next((release for release in self.releases if release.version == version), None)

    def capability(self, capability: str) -> GpuKind | None:
        """The GPUs of that compute capability."""
        return next((kind for kind in self.gpus if kind.capability == capability), None)

    def elsewhere(self, platform: str | None) -> Platform | None:
        """What is known about the framework on that platform; None for the matrix's own."""
        rows = (row for row in self.platforms if (row.platform, row.framework) == (platform, self.framework))
        return next(rows, None)

    def at(self, platform: str | None) -> VersionMatrix:
        """The matrix with the drivers of that platform: where the driver is the one for Windows, its versions."""
        elsewhere = self.elsewhere(platform)
        return self._for_windows if elsewhere is not None and elsewhere.windows_driver else self

    @cached_property
    def _for_windows(self) -> VersionMatrix:
        windows = windows_drivers(self.cuda_majors, self.cuda_releases)
        rows: dict[str, Any] = {
            section: tuple(row.model_copy(update={"oldest_driver": windows(row.oldest_driver)}) for row in given)
            for section, given in (("cuda_majors", self.cuda_majors), ("gpus", self.gpus), ("cudnn", self.cudnn))
        }
        releases = tuple(
            row.model_copy(update={"driver": row.windows_driver or windows(row.driver)}) for row in self.cuda_releases
        )
        return replace(self, cuda_releases=releases, of_windows=True, **rows)

    def oldest_driver(self, cuda: str) -> str | None:
        """The oldest driver that runs programs of that CUDA release; None if not known."""
        return next((row.oldest_driver for row in self.cuda_majors if row.major == numbers(cuda)[0]), None)

    def ptx_cuda(self, kernels: Kernels, cuda: str) -> str | None:
        """The CUDA release that compiles the PTX of kernels that were built with that CUDA; None if not known."""
        if kernels.ptx_isa is None:
            return cuda
        return next((row.cuda for row in self.ptx_versions if row.isa == kernels.ptx_isa), None)

    def ptx_driver(self, kernels: Kernels, cuda: str) -> str | None:
        """The oldest driver that compiles the PTX of kernels that were built with that CUDA; None if not known.

        It is the first driver of a minor release of CUDA, because patch releases do not change PTX.
        """
        known = self.ptx_cuda(kernels, cuda)
        wanted = numbers(known)[:2] if known else ()
        if known and wanted[1:] == (0,):
            return self.oldest_driver(known)  # what every driver of that major compiles
        drivers = [row.driver for row in self.cuda_releases if numbers(row.release)[:2] == wanted and row.driver]
        return min(drivers, key=numbers, default=None)

    def sonames(self, release: Release) -> dict[str, str]:
        """The libraries that a release loads: short name to file name."""
        cuda = numbers(release.cuda)[0]
        cudnn = self.cudnn_major(release)
        found: dict[str, str] = {}
        for row in self.libraries:
            if row.cuda in (None, cuda) and row.cudnn in (None, cudnn) and row.nccl in (None, release.nccl.linkage):
                found |= row.sonames
        return found

    def cudnn_major(self, release: Release) -> int | None:
        """The major of cuDNN that a release was built with, or the lowest that it requires."""
        if release.cudnn is not None:
            return numbers(release.cudnn)[0]
        requirement = cudnn_requirement(release)
        floors = [Version(item.version).major for item in requirement.specifier] if requirement else []
        return min(floors, default=None)

    def too_old(self, today: dt.date) -> str | None:
        """How old a matrix is that lacks newer releases; None if it is recent."""
        days = (today - dt.date.fromisoformat(self.updated)).days
        if days <= _OLD_DAYS:
            return None
        return f"{days} days old: newer releases are missing; update keras-doctor"

    def keras_feature(self, feature: str, package: str, version: str) -> KnownFeature:
        """What a release of Keras, which must be a valid version, does with a feature over several replicas."""
        return known_feature(self.keras_features, feature, package, version)

    def known_bad_for(self, versions: Mapping[str, str]) -> Iterator[KnownBad]:
        """The known-bad combinations that these versions match.

        Args:
            versions: for example ``{"tensorflow": "2.21.0", "cudnn": "9.5.1", "capability": "7.0"}``. Rows about
                anything else are left out.

        Raises:
            packaging.version.InvalidVersion: one of them is not a version.
        """
        for row in self.known_bad:
            if all(
                name in versions and meets(versions[name], spec, prereleases=True) for name, spec in row.when.items()
            ):
                yield row


def cudnn_requirement(release: Release) -> Requirement | None:
    """What the release's ``[and-cuda]`` requires of cuDNN."""
    for line in release.and_cuda or ():
        if line.startswith("nvidia-cudnn-"):
            return parse_requirement(line)
    return None
