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


@check(
    "versions.cuda-libraries-match", severity=Severity.WARNING, needs_gpus=True, requires=["versions.cuda-libraries"]
)
def cuda_libraries_match(
    libraries: Libraries, packages: Packages, tensorflow: TensorFlowBuild, target: Target, matrix: VersionMatrix
) -> Iterator[Outcome]:
    """The CUDA libraries are from one CUDA release.

    Why: NVIDIA tests the components of one release together. TensorFlow 2.20 and later accept ranges of versions, so
    upgrading one wheel, or the pins of PyTorch, can leave a mixture. cuSOLVER 12.9 does not even load with cuBLAS 12.5.
    Remedy: install all NVIDIA wheels from one release, or use a separate environment for each framework.
    Sources:
        https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/#cuda-toolkit-major-component-versions
        https://github.com/NVIDIA/tensorflow/issues/110
    Failure modes: mixed_cuda_components
    """
    found = [item for item in cuda_libraries(libraries) if item.status == "found" and item.name != "cudnn"]
    if not found:
        yield NotApplicable(reason=libraries.note or "no CUDA library is found")
        return
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
