from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore, uninstall
from kdoctor.facts import Packages, PciDevices, Target, TensorFlowBuild, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._builds import after_a_gpu


@check("versions.cuda-build", severity=Severity.ERROR, needs_gpus=True, requires=["versions.tensorflow-installed"])
def cuda_build(
    tensorflow: TensorFlowBuild, packages: Packages, target: Target, pci: PciDevices | Unavailable
) -> Iterator[Outcome]:
    """TensorFlow is built with CUDA.

    Why: a CPU-only build does not see GPUs and reports no error. MirroredStrategy then trains on one CPU replica.
    Remedy: replace the CPU-only build with tensorflow[and-cuda] of the same version.
    Sources:
        https://www.tensorflow.org/install/pip
        https://github.com/tensorflow/tensorflow/issues/37618
    Failure modes: silent_one_cpu_replica
    """
    name = tensorflow.distribution or "tensorflow"
    subject = f"{name} {tensorflow.version or '(version unknown)'}"
    if tensorflow.cuda_build is None:
        yield Unjudged(subject=subject, reason=tensorflow.unreadable or "the build does not state whether it has CUDA")
    elif tensorflow.cuda_build:
        brief = f"CUDA {tensorflow.cuda_version}" if tensorflow.cuda_version else ""
        observed = f"built with CUDA {tensorflow.cuda_version or '(release unknown)'}"
        yield Evidence(subject=subject, observed=observed, brief=brief)
    else:
        remedy, rollback = _replacement(name, tensorflow.version, packages, target)
        yield Finding(
            subject=subject,
            observed=f"built without CUDA for {target.platform}",
            expected="a build with CUDA, because the checklist expects GPUs",
            remedy=remedy,
            rollback=rollback,
            explained_by=("versions.one-tensorflow",),
            after=after_a_gpu(pci),
        )


def _replacement(name: str, version: str | None, packages: Packages, target: Target) -> tuple[Remedy, Rollback]:
    if not target.platform.endswith("x86_64") or not target.platform.startswith("linux"):
        remedy = Remedy.reinstall(
            "Run the job in NVIDIA's TensorFlow container (on Windows, in WSL2): no wheel has CUDA for this platform.",
            "docker run --gpus all --rm -it '<NVIDIA TensorFlow image>' '<command>'",
        )
        return remedy, Rollback.nothing(f"not needed (a container leaves {target.prefix} unchanged)")
    wanted = f"tensorflow[and-cuda]=={version}" if version else "tensorflow[and-cuda]"
    # tensorflow-cpu and tensorflow share one folder, so the first must be removed before the other is installed.
    removal = (uninstall(target, packages, name),) if name != "tensorflow" else ()
    remedy = Remedy.reinstall(
        "Replace it with the CUDA build of the same version and its CUDA libraries.",
        *removal,
        install(target, packages, wanted),
    )
    return remedy, restore(target, packages, name)
