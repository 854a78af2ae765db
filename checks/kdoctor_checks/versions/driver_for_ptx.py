from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, Gpu, Gpus, Target, TensorFlowBuild
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks._builds import code_of, cuda_of, judge_gpus
from kdoctor_checks._versions import numbers
from kdoctor_checks.versions._drivers import too_old, unknown_driver


@check("versions.driver-for-ptx", severity=Severity.ERROR, needs_gpus=True, requires=["versions.gpu-code"])
def driver_for_ptx(
    tensorflow: TensorFlowBuild, gpus: Gpus, environment: Environment, target: Target, matrix: VersionMatrix
) -> Iterator[Outcome]:
    """The NVIDIA driver can compile TensorFlow's PTX for GPUs that need it.

    Why: CUDA's minor-version compatibility covers machine code, not PTX. A GPU that is newer than the machine code of
    the build needs a driver as new as the CUDA toolkit that made the PTX. On an older driver it fails with
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION, while other GPUs run the same TensorFlow.
    Remedy: install a driver as new as the build's toolkit, or a TensorFlow with machine code for the GPU.
    Sources:
        https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
        https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/
    Failure modes: ptx_newer_than_driver
    """
    code, cuda = code_of(tensorflow, matrix), cuda_of(tensorflow, matrix)
    if code is None or cuda is None:
        reason = tensorflow.unreadable or "neither the build nor the version matrix states them"
        yield Unjudged(subject="tensorflow", reason=f"its GPU code and CUDA release are unknown: {reason}")
        return

    def judge(gpu: Gpu, capability: str) -> Outcome:
        if code.runs_by(capability) == "machine code":
            return Evidence(subject=gpu.subject, observed=f"machine code for {capability}; needs no PTX")
        return _judge_ptx(gpu, gpus, cuda, target, matrix)

    yield from judge_gpus(gpus, environment, judge)


def _judge_ptx(gpu: Gpu, gpus: Gpus, cuda: str, target: Target, matrix: VersionMatrix) -> Outcome:
    driver, needed = numbers(gpus.driver_version), matrix.ptx_drivers(cuda)
    if not target.platform.startswith("linux"):
        reason = f"the required drivers are known for Linux only, not for {target.platform}"
        return Unjudged(subject=gpu.subject, reason=reason)
    if driver is None or needed is None:
        reason = unknown_driver(gpus) if driver is None else f"the driver that compiles PTX of CUDA {cuda} is unknown"
        return Unjudged(subject=gpu.subject, reason=reason)
    first, last = needed
    ptx = f"compute capability {gpu.compute_capability} needs PTX of CUDA {cuda}; driver {gpus.driver_version}"
    if driver >= (numbers(last) or ()):
        return Evidence(subject=gpu.subject, observed=f"{ptx} (CUDA {cuda} shipped with {last})")
    if driver >= (numbers(first) or ()):
        reason = f"{ptx} is between {first} and {last}, and the patch release of CUDA {cuda} is unknown"
        return Unjudged(subject=gpu.subject, reason=reason)
    offered = numbers(gpus.cuda_driver_version)
    if offered is not None and offered >= (numbers(cuda) or ())[:2]:
        reason = f"{ptx} is too old, but supports CUDA {gpus.cuda_driver_version}; cuda-compat may bridge the gap"
        return Unjudged(subject=gpu.subject, reason=reason)
    observed, reason = f"{ptx} is too old to compile it", f", as shipped with CUDA {cuda}"
    brief = f"driver {gpus.driver_version} cannot compile TensorFlow's PTX for it"
    return too_old(gpu.subject, observed, last, reason, gpus, brief=brief)
