"""Whether XLA finds what it needs to compile for GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Libraries, Packages, Target, TensorFlowBuild, XlaFile
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor.text.lists import some
from kdoctor_checks._builds import release_of
from kdoctor_checks.versions._libraries import pinned


@check("versions.xla-files", severity=Severity.WARNING, needs_gpus=True, requires=["versions.cuda-build"])
def xla_files(
    libraries: Libraries, tensorflow: TensorFlowBuild, packages: Packages, target: Target, matrix: VersionMatrix
) -> Iterator[Outcome]:
    """XLA finds libdevice and ptxas, which it needs to compile for GPUs.

    Why: with jit_compile=True, and wherever TensorFlow uses XLA by itself, the first step fails ("libdevice not found
    at ./libdevice.10.bc") or compiles slowly without ptxas. A job that never uses XLA does not notice.
    Remedy: install nvidia-cuda-nvcc of TensorFlow's CUDA, or name CUDA's folder in XLA_FLAGS.
    Sources:
        https://github.com/tensorflow/tensorflow/issues/58681
        https://openxla.org/xla/flags_guidance
    Failure modes: libdevice
    """
    if not libraries.cuda_build or not libraries.xla_files:
        yield NotApplicable(reason=libraries.note or "this TensorFlow does not compile for GPUs")
    for file in libraries.xla_files:
        if file.status == "found":
            yield Evidence(subject=file.name, observed=f"{file.path} ({file.found_by})")
        else:
            yield _finding(file, tensorflow, (packages, target), matrix)


def _finding(
    file: XlaFile, tensorflow: TensorFlowBuild, installed: tuple[Packages, Target], matrix: VersionMatrix
) -> Finding:
    packages, target = installed
    major = (tensorflow.cuda_version or "12").partition(".")[0]
    package = f"nvidia-cuda-nvcc-cu{major}"
    wanted = pinned(release_of(tensorflow, matrix), package) or package
    places = some(file.searched)
    return Finding(
        subject=file.name,
        observed=f"not found{f' (searched: {places})' if places else ''}",
        expected=f"{file.name} where XLA looks",
        remedy=Remedy(
            summary=f"Install {package}; where a CUDA toolkit is installed elsewhere, name its folder instead "
            "(XLA_FLAGS=--xla_gpu_cuda_data_dir=FOLDER), or leave jit_compile off.",
            action=Action.REINSTALL,
            commands=(install(target, packages, wanted),),
        ),
        rollback=restore(target, packages, package),
    )
