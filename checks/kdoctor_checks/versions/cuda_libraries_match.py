import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore, uninstall
from kdoctor.facts import Libraries, Library, Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._builds import release_of
from kdoctor_checks._cuda_components import cuda_release
from kdoctor_checks.versions._libraries import cuda_libraries, shown, with_libraries

_WHEEL = re.compile(r"nvidia-(.+)-cu(\d+)")
_SHARED_FOLDERS = frozenset({"cudnn", "nccl", "cusparselt", "nvshmem"})
"""Components whose wheels for different CUDA majors are installed into the same folder."""


@check(
    "versions.cuda-libraries-match", severity=Severity.WARNING, needs_gpus=True, requires=["versions.cuda-libraries"]
)
def cuda_libraries_match(
    libraries: Libraries, packages: Packages, tensorflow: TensorFlowBuild, target: Target, matrix: VersionMatrix
) -> Iterator[Outcome]:
    """The CUDA libraries are from one CUDA release, without overlapping wheels.

    Why: NVIDIA tests the components of one release together. TensorFlow 2.20 and later accept ranges of versions, so
    upgrading one wheel, or the pins of PyTorch, can leave a mixture. cuSOLVER 12.9 does not even load with cuBLAS 12.5.
    The cuDNN and NCCL wheels for CUDA 11, 12 and 13 share folders, so two of them overwrite each other.
    Remedy: install all NVIDIA wheels from one release, or use a separate environment for each framework.
    Sources:
        https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/#cuda-toolkit-major-component-versions
        https://github.com/NVIDIA/tensorflow/issues/110
    Failure modes: mixed_cuda_components
    """
    found = [item for item in cuda_libraries(libraries) if item.status == "found" and item.name != "cudnn"]
    if not libraries.cuda_build or not found:
        yield NotApplicable(reason=libraries.note or "no CUDA library is found")
        return
    yield from _judge_wheels(packages, target, tensorflow.cuda_version)
    releases: dict[str, list[Library]] = {}
    for item in found:
        release = cuda_release(item.name, item.version)
        if release is None:
            reason = f"the CUDA release of version {item.version or '(unknown)'} is not known"
            yield Unjudged(subject=item.soname or item.name, reason=reason)
        else:
            releases.setdefault(release, []).append(item)
    if len(releases) == 1:
        yield Evidence(
            subject="CUDA libraries",
            observed=f"{counted(len(found), 'library', 'libraries')} of CUDA {next(iter(releases))}",
        )
    elif releases:
        names = sorted({item.package for items in releases.values() for item in items if item.package})
        wanted = install(target, packages, "--upgrade", with_libraries(tensorflow, release_of(tensorflow, matrix)))
        parts = [f"CUDA {name}: {', '.join(map(shown, items))}" for name, items in sorted(releases.items())]
        yield Finding(
            subject="CUDA libraries",
            observed=f"from {len(releases)} CUDA releases ({'; '.join(parts)})",
            brief=f"from {len(releases)} different CUDA releases",
            expected="all from one CUDA release",
            remedy=Remedy.reinstall(
                "Reinstall all NVIDIA wheels together. With pip, pin them to one release, because a range can "
                "resolve to a mixture again.",
                *([uninstall(target, packages, *names)] if names else []),
                wanted,
            ),
            rollback=restore(target, packages, *(names or ["tensorflow"])),
        )


def _judge_wheels(packages: Packages, target: Target, cuda: str | None) -> Iterator[Finding]:
    by_component: dict[str, set[str]] = {}
    for package in packages.installed:
        if match := _WHEEL.fullmatch(package.name):
            by_component.setdefault(match[1], set()).add(package.name)
    for component, names in sorted(by_component.items()):
        if len(names) > 1 and component in _SHARED_FOLDERS:
            wheels = sorted(names)
            pins = [f"{name}=={packages.version(name)}" for name in wheels]
            major = f"-cu{(cuda or '').partition('.')[0]}=="
            kept = next((pin for pin in pins if major in pin), pins[-1])
            yield Finding(
                subject=f"nvidia-{component}",
                observed=f"{', '.join(pins)} share the folder nvidia/{component}; the last one installed wins",
                brief=f"{counted(len(wheels), 'wheel')} overwrite each other's files",
                expected="the wheel for one CUDA major",
                remedy=Remedy.reinstall(
                    "Uninstall them all, then install the one for TensorFlow's CUDA. Use a separate "
                    "environment for a framework that needs another one.",
                    uninstall(target, packages, *wheels),
                    install(target, packages, kept),
                ),
                rollback=restore(target, packages, *wheels),
            )
