"""Whether the installed TensorFlow can use a GPU at all."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore, uninstall
from kdoctor.facts import Packages, Target, TensorFlowBuild
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged


@check("versions.cuda-build", severity=Severity.ERROR, needs_gpus=True, requires=["versions.tensorflow-installed"])
def cuda_build(tensorflow: TensorFlowBuild, packages: Packages, target: Target) -> Iterator[Outcome]:
    """TensorFlow is a build with CUDA.

    Why: a build for the CPU alone sees no GPU, says nothing about it, and MirroredStrategy then trains on one CPU
    replica.
    Remedy: replace the build for the CPU by tensorflow[and-cuda] of the same version.
    Sources:
        https://www.tensorflow.org/install/pip
        https://github.com/tensorflow/tensorflow/issues/37618
    Failure modes: silent_one_cpu_replica
    """
    name = tensorflow.distribution or "tensorflow"
    subject = f"{name} {tensorflow.version or '(version unknown)'}"
    if tensorflow.cuda_build is None:
        yield Unjudged(subject=subject, reason=tensorflow.unreadable or "its build does not say whether it has CUDA")
        return
    if tensorflow.cuda_build:
        yield Evidence(subject=subject, observed=f"built with CUDA {tensorflow.cuda_version or '(release not stated)'}")
        return
    if not target.platform.endswith("x86_64") or not target.platform.startswith("linux"):
        yield _other_platform(subject, target)
        return
    wanted = f"tensorflow[and-cuda]=={tensorflow.version}" if tensorflow.version else "tensorflow[and-cuda]"
    # tensorflow-cpu and tensorflow share their folder: the one must go before the other comes.
    removal = (uninstall(target, packages, name),) if name != "tensorflow" else ()
    yield Finding(
        subject=subject,
        observed="built without CUDA",
        expected="a build with CUDA, since the checklist expects GPUs",
        remedy=Remedy(
            summary="Replace it by the build with CUDA of the same version, with the CUDA libraries that it needs.",
            action=Action.REINSTALL,
            commands=(*removal, install(target, packages, wanted)),
        ),
        rollback=restore(target, packages, name),
    )


def _other_platform(subject: str, target: Target) -> Finding:
    return Finding(
        subject=subject,
        observed=f"built without CUDA, as all of TensorFlow's wheels for {target.platform} are",
        expected="a build with CUDA, since the checklist expects GPUs",
        remedy=Remedy(
            summary="Run the job in NVIDIA's TensorFlow container, which is built for Arm too (on Windows: in WSL2); "
            "no wheel brings CUDA to this platform.",
            action=Action.REINSTALL,
            commands=("docker run --gpus all --rm -it '<NVIDIA TensorFlow image>' '<command>'",),
        ),
        rollback=Rollback.nothing(f"a container leaves {target.prefix} as it is"),
    )
