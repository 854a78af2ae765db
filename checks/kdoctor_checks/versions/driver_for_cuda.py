from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, Target, TensorFlowBuild
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks._builds import cuda_of
from kdoctor_checks._versions import numbers
from kdoctor_checks.versions._drivers import too_old, unknown_driver

_SUBJECT = "NVIDIA driver"


@check(
    "versions.driver-for-cuda",
    severity=Severity.ERROR,
    needs_gpus=True,
    requires=["versions.cuda-build", "driver.library-matches-module"],
)
def driver_for_cuda(
    tensorflow: TensorFlowBuild, gpus: Gpus, target: Target, matrix: VersionMatrix
) -> Iterator[Outcome]:
    """The NVIDIA driver supports the CUDA release that TensorFlow was built with.

    Why: an older driver cannot run programs built with a newer CUDA major. TensorFlow then registers no GPU and trains
    on the CPU, or stops with CUDA_ERROR_INSUFFICIENT_DRIVER.
    Remedy: install a newer driver branch and restart, or install a TensorFlow built with the driver's CUDA.
    Source: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
    """
    cuda, driver = cuda_of(tensorflow, matrix), numbers(gpus.driver_version)
    least = matrix.oldest_driver(cuda) if cuda else None
    if not target.platform.startswith("linux"):
        reason = f"the minimum drivers are known for Linux only, not for {target.platform}"
        yield Unjudged(subject=_SUBJECT, reason=reason)
    elif cuda is None:
        reason = tensorflow.unreadable or "neither the build nor the version matrix states it"
        yield Unjudged(subject=_SUBJECT, reason=f"TensorFlow's CUDA release is unknown: {reason}")
    elif driver is None:
        yield Unjudged(subject=_SUBJECT, reason=unknown_driver(gpus))
    elif least is None:
        yield Unjudged(subject=_SUBJECT, reason=f"the minimum driver for CUDA {cuda.partition('.')[0]} is unknown")
    else:
        yield _judge(gpus, cuda, least, matrix)


def _judge(gpus: Gpus, cuda: str, least: str, matrix: VersionMatrix) -> Outcome:
    observed = f"{gpus.driver_version}, TensorFlow built with CUDA {cuda}"
    major = int(cuda.partition(".")[0])
    if (numbers(gpus.driver_version) or ()) >= (numbers(least) or ()):
        return Evidence(subject=_SUBJECT, observed=f"{observed} (CUDA {major} needs driver {least})")
    offered = numbers(gpus.cuda_driver_version)
    if offered is None or offered[0] >= major:
        # cuda-compat installs a newer user-space driver on data-center GPUs. The old kernel module is then enough.
        supports = f"supports CUDA {gpus.cuda_driver_version}" if offered else "does not report its CUDA release"
        reason = f"{observed}; older than {least}, but {supports}; cuda-compat may bridge the gap"
        return Unjudged(subject=_SUBJECT, reason=reason)
    observed = f"too old for CUDA {cuda}, with which TensorFlow was built"
    brief = f"too old for CUDA {cuda}, which needs {least}"
    return too_old(
        f"{_SUBJECT} {gpus.driver_version}", observed, least, f" for CUDA {major}", gpus, matrix, brief=brief
    )
