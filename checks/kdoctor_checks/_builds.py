"""What a TensorFlow build supports, by its build information or the version matrix."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from kdoctor.facts import Environment, Gpu, Gpus, Libraries, Packages, PciDevices, TensorFlowBuild, Unavailable
from kdoctor.facts.visible import read_mask
from kdoctor.matrix.kernels import Kernels, weakest
from kdoctor.matrix.model import Release, VersionMatrix
from kdoctor.matrix.values import CodeKind
from kdoctor.model import Outcome, Unjudged
from kdoctor.records import record
from kdoctor_checks._gpus import unread
from kdoctor_checks._versions import numbers, parse_version

NO_DRIVER = ("driver.loaded", "driver.library-matches-module", "gpu.visible-to-driver", "gpu.responding")
"""The checks that fail if the driver lists no GPU."""

_ARCHITECTURE = re.compile(r"(sm|compute)_(\d+)[af]?")


@record
class Code:
    """The GPU code in a build."""

    kernels: tuple[Kernels, ...]
    """The compiled kernels, then those of TensorFlow's generator."""
    read_from: Literal["the build", "the version matrix"]

    def runs_by(self, capability: str) -> CodeKind | None:
        """The kind of code that a GPU of that compute capability runs; None if the build has none for it."""
        return weakest(self.kernels, capability)

    def __str__(self) -> str:
        common = set.intersection(*(set(each.cubins) for each in self.kernels))
        cubins = ", ".join(f"{number / 10:.1f}" for number in sorted(common))
        targets = dict.fromkeys(target for each in self.kernels for target in each.ptx)
        ptx = ", ".join(f"{target[:-1]}.{target[-1]}" if target.isdecimal() else f"sm_{target}" for target in targets)
        return f"machine code for {cubins or 'none'}; PTX for {ptx or 'none'}"


def code_of(tensorflow: TensorFlowBuild, matrix: VersionMatrix) -> Code | None:
    """The code in the installed build; None if neither the build nor the matrix lists it.

    ``compute_XY`` in a build's list means machine code and PTX for the compiled kernels, and PTX alone for the
    generated ones, as the fatbins of TensorFlow's wheels show. The matrix knows more about the builds that it lists:
    the versions of their PTX.
    """
    release = release_of(tensorflow, matrix)
    found = [match for entry in tensorflow.compute_capabilities if (match := _ARCHITECTURE.fullmatch(entry))]
    cubins = tuple(sorted({int(match[2]) for match in found}))
    if release is not None and cubins in ((), release.cubins):
        return Code(kernels=release.kernels, read_from="the build" if found else "the version matrix")
    if not found:
        return None
    ptx = tuple(match[2] for match in found if match[1] == "compute")
    generated = tuple(sorted({int(match[2]) for match in found if match[1] == "sm"}))
    kernels = (Kernels(cubins=cubins, ptx=ptx), Kernels(cubins=generated, ptx=ptx))
    return Code(kernels=kernels, read_from="the build")


def release_of(tensorflow: TensorFlowBuild, matrix: VersionMatrix) -> Release | None:
    """The matrix's entry for the installed release, if it has one."""
    version = parse_version(tensorflow.version)
    return next((release for release in matrix.releases if release.key == version), None) if version else None


def not_in_matrix(version: str, matrix: VersionMatrix) -> str:
    """Why the matrix has no row for a release: it is newer than all rows, or it was left out."""
    found, finals = parse_version(version), [release.key for release in matrix.releases if not release.prerelease]
    is_newer = found is not None and all(found > release for release in finals)
    return f"{'newer than' if is_newer else 'not in'} this kdoctor's version matrix of {matrix.updated}"


def cuda_of(tensorflow: TensorFlowBuild, matrix: VersionMatrix) -> str | None:
    """The CUDA release that the build was built with; None if neither the build nor the matrix states it."""
    if numbers(tensorflow.cuda_version):
        return tensorflow.cuda_version
    release = release_of(tensorflow, matrix)
    return release.cuda if release else None


def gpus_of_job(gpus: Gpus, environment: Environment | Unavailable) -> tuple[Gpu, ...]:
    """The GPUs that the variables leave visible to the job; all GPUs if that is unknown."""
    if isinstance(environment, Unavailable):
        return gpus.devices
    mask = read_mask(environment, gpus.devices)
    return gpus.devices if mask.unknown_reason else mask.visible


def judge_gpus(gpus: Gpus, environment: Environment, judge: Callable[[Gpu, str], Outcome]) -> Iterator[Outcome]:
    """The outcome of ``judge`` for each GPU of the job and its compute capability, where that is known."""
    for gpu in gpus_of_job(gpus, environment):
        if missing := unread(gpu, "compute_capability"):
            yield missing
        elif numbers(gpu.compute_capability) is None:
            yield Unjudged(subject=gpu.subject, reason=f"{gpu.compute_capability!r} is not a compute capability")
        else:
            yield judge(gpu, gpu.compute_capability or "")
    if not gpus.devices:
        reason = f"the driver lists no GPUs ({gpus.error or gpus.state})"
        yield Unjudged(subject="GPUs", reason=reason, explained_by=NO_DRIVER)


def after_a_gpu(pci: PciDevices | Unavailable) -> tuple[str, ...]:
    """For ``Finding.after``: on a machine without an NVIDIA GPU, what only GPUs need does not matter yet."""
    return ("driver.loaded",) if isinstance(pci, PciDevices) and not pci.gpus else ()


def versions_there(
    tensorflow: TensorFlowBuild, packages: Packages, libraries: Libraries | None = None
) -> Mapping[str, str]:
    """The valid versions of everything that a known-bad combination may name, except GPUs and Python."""
    there = {package.name: package.version for package in reversed(packages.installed) if package.version}
    there["tensorflow"] = tensorflow.version or ""
    cudnn = libraries.find("cudnn") if libraries else None
    if cudnn is not None:
        there["cudnn"] = (cudnn.package_version or cudnn.version) or ""
    return {name: version for name, version in there.items() if parse_version(version)}
