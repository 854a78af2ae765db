"""Whether the CUDA libraries that would be loaded are of one CUDA release."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from kdoctor.check import check
from kdoctor.commands.packages import install, restore, uninstall
from kdoctor.facts import Libraries, Library, Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._builds import release_of
from kdoctor_checks._cuda_components import cuda_release
from kdoctor_checks.versions._libraries import cuda_libraries, shown, with_libraries

_WHEEL = re.compile(r"nvidia-(.+)-cu(\d+)")
_SHARED_FOLDERS = frozenset({"cudnn", "nccl", "cusparselt", "nvshmem"})
"""Components whose wheels for different CUDA majors write into one folder: the last installed one wins."""


@check(
    "versions.cuda-libraries-match", severity=Severity.WARNING, needs_gpus=True, requires=["versions.cuda-libraries"]
)
def cuda_libraries_match(
    libraries: Libraries, packages: Packages, tensorflow: TensorFlowBuild, target: Target, matrix: VersionMatrix
) -> Iterator[Outcome]:
    """The CUDA libraries are of one CUDA release, and no wheels of different majors write into one folder.

    Why: NVIDIA tests the components of one release together. TensorFlow since 2.20 asks for ranges, so that an upgrade
    of one wheel, or PyTorch's own pins, leave a mixture; cuSOLVER of 12.9 beside cuBLAS of 12.5 does not even load.
    The wheels of cuDNN and NCCL for CUDA 11, 12 and 13 share their folders, so that two of them overwrite each other.
    Remedy: install all NVIDIA wheels of one release together, or give each framework an environment of its own.
    Sources:
        https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/#cuda-toolkit-major-component-versions
        https://github.com/NVIDIA/tensorflow/issues/110
    Failure modes: mixed_cuda_components
    """
    found = [item for item in cuda_libraries(libraries) if item.status == "found" and item.name != "cudnn"]
    if not libraries.cuda_build or not found:
        yield NotApplicable(reason=libraries.note or "no CUDA library is found")
        return
    yield from _judge_wheels(packages, target)
    wanted = install(target, packages, "--upgrade", with_libraries(tensorflow, release_of(tensorflow, matrix)))
    releases: dict[str, list[Library]] = {}
    for item in found:
        release = cuda_release(item.name, item.version)
        if release is None:
            yield Unjudged(
                subject=item.soname or item.name, reason=f"{item.version or 'its version'} is of no known CUDA"
            )
        else:
            releases.setdefault(release, []).append(item)
    if len(releases) > 1:
        yield _mixture(releases, packages, target, wanted)
    elif releases:
        (release,) = releases
        yield Evidence(subject="CUDA libraries", observed=f"{len(found)} of CUDA {release}")


def _mixture(releases: Mapping[str, Sequence[Library]], packages: Packages, target: Target, command: str) -> Finding:
    parts = [f"CUDA {name}: {', '.join(map(shown, items))}" for name, items in sorted(releases.items())]
    names = sorted({item.package for items in releases.values() for item in items if item.package})
    majors = {name.partition(".")[0] for name in releases}
    return Finding(
        subject="CUDA libraries",
        observed="; ".join(parts),
        expected="all of one CUDA release" if len(majors) == 1 else "all of one CUDA major, and of one release",
        remedy=Remedy(
            summary="Install all NVIDIA wheels anew and together; with pip, pin them to one release, for a range may "
            "resolve to a mixture again.",
            action=Action.REINSTALL,
            commands=(*([uninstall(target, packages, *names)] if names else []), command),
        ),
        rollback=restore(target, packages, *names) if names else restore(target, packages, "tensorflow"),
    )


def _judge_wheels(packages: Packages, target: Target) -> Iterator[Finding]:
    by_component: dict[str, list[str]] = {}
    for package in packages.installed:
        if match := _WHEEL.fullmatch(package.name):
            by_component.setdefault(match[1], []).append(package.name)
    for component, names in sorted(by_component.items()):
        distinct = sorted(set(names))
        if len(distinct) > 1 and component in _SHARED_FOLDERS:
            pins = [f"{name}=={packages.version(name)}" for name in distinct]
            yield Finding(
                subject=f"nvidia-{component}",
                observed=f"{', '.join(pins)} share the folder nvidia/{component}: the last one installed wins",
                expected="the wheel of one CUDA major",
                remedy=Remedy(
                    summary="Uninstall both, and install the one of TensorFlow's CUDA; another framework that needs "
                    "the other one needs an environment of its own.",
                    action=Action.REINSTALL,
                    commands=(uninstall(target, packages, *distinct), install(target, packages, pins[0])),
                ),
                rollback=restore(target, packages, *distinct),
            )
