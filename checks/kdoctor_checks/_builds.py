"""What a TensorFlow build was made for: what the build itself says, and else the version matrix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kdoctor.facts import Environment, Gpu, Gpus, Libraries, Packages, TensorFlowBuild, Unavailable
from kdoctor.facts.visible import read_mask
from kdoctor.matrix.model import Release, VersionMatrix, code_for
from kdoctor_checks._versions import numbers, parse_version

_ARCHITECTURE = re.compile(r"(sm|compute)_(\d+)[af]?")


@dataclass(frozen=True, kw_only=True)
class Code:
    """The code for GPUs that a build holds. 90 is compute capability 9.0."""

    cubins: tuple[int, ...]
    """Machine code: it runs on GPUs of the same major capability that are not older."""
    ptx: tuple[int, ...]
    """Intermediate code: the driver compiles it for GPUs that are not older."""
    read_from: Literal["the build", "the version matrix"]

    def runs_by(self, capability: str) -> Literal["machine code", "PTX"] | None:
        """By what a GPU of that compute capability runs the build; None: it holds no code for it."""
        return code_for(self.cubins, self.ptx, capability)

    @property
    def words(self) -> str:
        """``machine code for 6.0, 7.0, 8.0; PTX of 8.0``."""
        cubins = ", ".join(f"{number / 10:.1f}" for number in sorted(self.cubins))
        ptx = ", ".join(f"{number / 10:.1f}" for number in sorted(self.ptx)) or "none"
        return f"machine code for {cubins or 'none'}; PTX of {ptx}"


def code_of(tensorflow: TensorFlowBuild, matrix: VersionMatrix) -> Code | None:
    """The code that the installed build holds; None where neither it nor the matrix says.

    ``compute_XY`` in a build's list stands for machine code and PTX of that architecture, as its fatbins show.
    """
    found = [match for entry in tensorflow.compute_capabilities if (match := _ARCHITECTURE.fullmatch(entry))]
    if found:
        ptx = tuple(int(match[2]) for match in found if match[1] == "compute")
        return Code(cubins=tuple(int(match[2]) for match in found), ptx=ptx, read_from="the build")
    release = release_of(tensorflow, matrix)
    return Code(cubins=release.cubins, ptx=release.ptx, read_from="the version matrix") if release else None


def release_of(tensorflow: TensorFlowBuild, matrix: VersionMatrix) -> Release | None:
    """The matrix's row of the installed release; None where it has none."""
    version = parse_version(tensorflow.version)
    return next((release for release in matrix.releases if release.key == version), None) if version else None


def cuda_of(tensorflow: TensorFlowBuild, matrix: VersionMatrix) -> str | None:
    """The CUDA release that the installed build was made with; None where nobody says."""
    if numbers(tensorflow.cuda_version):
        return tensorflow.cuda_version
    release = release_of(tensorflow, matrix)
    return release.cuda if release else None


def gpus_of_job(gpus: Gpus, environment: Environment | Unavailable) -> tuple[Gpu, ...]:
    """The GPUs that the variables leave the job; all where that cannot be told."""
    if isinstance(environment, Unavailable):
        return gpus.devices
    mask = read_mask(environment, gpus.devices)
    return gpus.devices if mask.untold else mask.visible


def versions_there(
    tensorflow: TensorFlowBuild, packages: Packages, libraries: Libraries | None = None
) -> Mapping[str, str]:
    """The readable versions of everything that a known-bad combination may name, but for GPUs and Python."""
    there = {package.name: package.version for package in reversed(packages.installed) if package.version}
    there["tensorflow"] = tensorflow.version or ""
    cudnn = libraries.find("cudnn") if libraries else None
    if cudnn is not None:
        there["cudnn"] = (cudnn.package_version or cudnn.version) or ""
    return {name: version for name, version in there.items() if parse_version(version)}
