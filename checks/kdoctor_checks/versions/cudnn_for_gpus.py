from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Environment, Gpu, Gpus, Libraries, Library, Packages, Target, TensorFlowBuild
from kdoctor.matrix.cuda import CudnnSupport
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.values import parse_requirement, specifier
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._builds import cuda_of, judge_gpus
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
    """The installed cuDNN supports all GPUs and the driver.

    Why: for CUDA 12, cuDNN 9.11 and later has no code for GPUs before Turing (V100, P100, GTX 10). The version ranges
    of TensorFlow 2.20 and later resolve to it. The first convolution then crashes. cuDNN before 9.7 has no code for
    Blackwell.
    Remedy: install a cuDNN with code for the oldest GPU; for GPUs before Turing nvidia-cudnn-cu12==9.10.2.21.
    Sources:
        https://docs.nvidia.com/deeplearning/cudnn/backend/latest/reference/support-matrix.html
        https://github.com/conda-forge/tensorflow-feedstock/issues/457
    Failure modes: cudnn_too_new_pre_turing
    """
    cudnn = libraries.find("cudnn")
    if libraries.cuda_build and not libraries.libraries:
        yield Unjudged(subject="libcudnn", reason="the libraries that TensorFlow needs were not read")
        return
    if cudnn is None or cudnn.status == "missing":
        yield NotApplicable(reason=libraries.note or "cuDNN is not installed")
        return
    version, cuda = parse_version(cudnn.version), numbers(cuda_of(tensorflow, matrix))
    subject = cudnn.soname or "libcudnn"
    if version is None or cuda is None:
        unread = f"its version is unknown: {cudnn.version_error or cudnn.load_error or 'not read'}"
        yield Unjudged(subject=subject, reason="its CUDA release is unknown" if version else unread)
        return
    rows = [row for row in matrix.cudnn if row.cuda == cuda[0] and specifier(row.versions).contains(version)]
    if not rows:
        yield Unjudged(subject=subject, reason=f"the version matrix does not list the GPUs of cuDNN {version}")
        return

    def judge(gpu: Gpu, capability: str) -> Outcome:
        fitting = [row for row in rows if specifier(row.capabilities).contains(capability)]
        if fitting:
            return _judge_driver(gpu, gpus.driver_version, cudnn, fitting)
        package = cudnn.package or f"nvidia-cudnn-cu{rows[0].cuda}"
        pin = _known_pin(capability, rows[0].cuda, matrix) or _range(capability, rows[0].cuda, package, matrix)
        code_for = " or ".join(dict.fromkeys(row.capabilities for row in rows))
        return Finding(
            subject=gpu.subject,
            observed=f"{gpu.name or 'GPU'} has compute capability {capability}, but {shown(cudnn)} has code for "
            f"{code_for} only",
            brief=f"cuDNN {version} has no code for this GPU",
            expected="a cuDNN with code for this GPU",
            remedy=Remedy.reinstall(
                "Install a cuDNN with code for this GPU."
                if pin
                else "Hide the GPU from the job, or use a TensorFlow for another CUDA. No cuDNN for this CUDA supports "
                "the GPU.",
                *((install(target, packages, pin),) if pin else ()),
                look=() if pin else ("kdoctor matrix",),
            ),
            rollback=restore(target, packages, package),
        )

    yield from judge_gpus(gpus, environment, judge)


def _judge_driver(gpu: Gpu, driver: str | None, cudnn: Library, fitting: Sequence[CudnnSupport]) -> Evidence | Unjudged:
    drivers = [row.oldest_driver for row in fitting if row.oldest_driver]
    least = min(drivers, key=lambda text: numbers(text) or (), default=None)
    found = numbers(driver)
    if least and found is None:
        return Unjudged(subject=gpu.subject, reason=f"the driver version is unknown, and cuDNN needs {least}")
    if least and found is not None and found < (numbers(least) or ()):
        reason = f"driver {driver} is older than {least}, the oldest that cuDNN {cudnn.version} is known to work with"
        return Unjudged(subject=gpu.subject, reason=reason)
    return Evidence(subject=gpu.subject, observed=f"{shown(cudnn)} has code for {gpu.compute_capability}")


def _known_pin(capability: str, cuda: int, matrix: VersionMatrix) -> str | None:
    """The wheel for this CUDA that the matrix recommends for a known failure of cuDNN on that capability."""
    rows = (row for row in matrix.known_bad if set(row.when) == {"cudnn", "capability"})
    lines = (line for row in rows if specifier(row.when["capability"]).contains(capability) for line in row.install)
    return next((line for line in lines if parse_requirement(line).name == f"nvidia-cudnn-cu{cuda}"), None)


def _range(capability: str, cuda: int, package: str, matrix: VersionMatrix) -> str | None:
    """The newest releases that have code for the capability."""
    rows = [row for row in matrix.cudnn if row.cuda == cuda and specifier(row.capabilities).contains(capability)]
    return f"{package}{rows[-1].versions}" if rows else None
