"""Whether the cuDNN that would be loaded has code for the GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Environment, Gpu, Gpus, Libraries, Library, Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import CudnnSupport, VersionMatrix, parse_requirement, specifier
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._builds import cuda_of, gpus_of_job
from kdoctor_checks._gpus import unread
from kdoctor_checks._versions import numbers, parse_version
from kdoctor_checks.versions._libraries import shown


@check("versions.cudnn-for-gpus", severity=Severity.ERROR, needs_gpus=True, requires=["versions.cudnn-for-build"])
def cudnn_for_gpus(
    libraries: Libraries,
    gpus: Gpus,
    environment: Environment,
    tensorflow: TensorFlowBuild,
    packages: Packages,
    target: Target,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """The cuDNN that is loaded has code for every GPU, and the driver is new enough for it.

    Why: cuDNN 9.11 and newer for CUDA 12 holds no code for GPUs before Turing (V100, P100, GTX 10), and the ranges of
    TensorFlow 2.20 and newer resolve to it: the first convolution crashes. cuDNN before 9.7 has none for Blackwell.
    Remedy: install a cuDNN with code for the oldest GPU, for GPUs before Turing nvidia-cudnn-cu12==9.10.2.21.
    Sources:
        https://docs.nvidia.com/deeplearning/cudnn/backend/latest/reference/support-matrix.html
        https://github.com/conda-forge/tensorflow-feedstock/issues/457
    Failure modes: cudnn_too_new_pre_turing
    """
    cudnn = libraries.find("cudnn")
    if not libraries.cuda_build or cudnn is None or cudnn.status == "missing":
        yield NotApplicable(reason=libraries.note or "there is no cuDNN to judge")
        return
    version, cuda = parse_version(cudnn.version), numbers(cuda_of(tensorflow, matrix))
    subject = cudnn.soname or "libcudnn"
    if version is None or cuda is None:
        said = cudnn.version_error or cudnn.load_error or "not read"
        yield Unjudged(subject=subject, reason="its CUDA is not known" if version else f"its version: {said}")
        return
    rows = [row for row in matrix.cudnn if row.cuda == cuda[0] and specifier(row.versions).contains(version)]
    if not rows:
        yield Unjudged(subject=subject, reason=f"the version matrix does not say which GPUs cuDNN {version} supports")
        return
    for gpu in gpus_of_job(gpus, environment):
        if missing := unread(gpu, "compute_capability"):
            yield missing
        elif parse_version(gpu.compute_capability) is None:
            yield Unjudged(subject=gpu.subject, reason=f"{gpu.compute_capability!r} is no compute capability")
        else:
            outcome = _judge(gpu, gpus.driver_version, cudnn, rows)
            yield outcome or _finding(gpu, cudnn, rows, (packages, target, matrix))
    if not gpus.devices:
        yield Unjudged(subject="GPUs", reason=f"the driver lists none ({gpus.error or gpus.state})")


def _judge(
    gpu: Gpu, driver: str | None, cudnn: Library, rows: Sequence[CudnnSupport]
) -> Evidence | Unjudged | Finding | None:
    """None: it has no code for the GPU."""
    fitting = [row for row in rows if specifier(row.capabilities).contains(gpu.compute_capability or "")]
    if not fitting:
        return None
    drivers = [row.oldest_driver for row in fitting if row.oldest_driver]
    least = min(drivers, key=lambda text: numbers(text) or (), default=None)
    found = numbers(driver)
    if least and found is None:
        return Unjudged(subject=gpu.subject, reason=f"the driver's version is unknown, and cuDNN needs {least}")
    if least and found is not None and found < (numbers(least) or ()):
        reason = f"driver {driver} is older than {least}, the oldest that cuDNN {cudnn.version} is known to work with"
        return Unjudged(subject=gpu.subject, reason=reason)
    return Evidence(subject=gpu.subject, observed=f"{shown(cudnn)} has code for {gpu.compute_capability}")


def _finding(
    gpu: Gpu, cudnn: Library, rows: Sequence[CudnnSupport], installed: tuple[Packages, Target, VersionMatrix]
) -> Finding:
    packages, target, matrix = installed
    package = cudnn.package or f"nvidia-cudnn-cu{rows[0].cuda}"
    pin = _known_pin(gpu, matrix) or _range(gpu, rows[0].cuda, package, matrix)
    return Finding(
        subject=gpu.subject,
        observed=f"{gpu.name or 'GPU'} has compute capability {gpu.compute_capability}, and {shown(cudnn)} has code "
        f"for {' or '.join(dict.fromkeys(row.capabilities for row in rows))}",
        expected="a cuDNN with code for it",
        remedy=Remedy(
            summary="Install a cuDNN with code for this GPU."
            if pin
            else "No cuDNN of this CUDA has code for this GPU: "
            "hide it from the job, or use a build for another CUDA (kdoctor matrix).",
            action=Action.REINSTALL,
            commands=(install(target, packages, pin),) if pin else ("kdoctor matrix",),
        ),
        rollback=restore(target, packages, package),
    )


def _known_pin(gpu: Gpu, matrix: VersionMatrix) -> str | None:
    """The wheel that the matrix names against a failure of cuDNN on that capability."""
    rows = (row for row in matrix.known_bad if set(row.when) == {"cudnn", "capability"})
    fitting = (row for row in rows if specifier(row.when["capability"]).contains(gpu.compute_capability or ""))
    lines = (line for row in fitting for line in row.install)
    return next((line for line in lines if parse_requirement(line).name.startswith("nvidia-cudnn")), None)


def _range(gpu: Gpu, cuda: int, package: str, matrix: VersionMatrix) -> str | None:
    """The newest releases that have code for the GPU."""
    fitting = [row for row in matrix.cudnn if row.cuda == cuda
               and specifier(row.capabilities).contains(gpu.compute_capability or "")]  # fmt: skip
    return f"{package}{fitting[-1].versions}" if fitting else None
