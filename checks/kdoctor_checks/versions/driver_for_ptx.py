from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, Gpu, Gpus, Packages, Target, TensorFlowBuild
from kdoctor.matrix.kernels import Kernels
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Evidence, Finding, Outcome, Severity, Unjudged
from kdoctor_checks._builds import code_of, cuda_of, judge_gpus
from kdoctor_checks._versions import numbers
from kdoctor_checks.versions._alternatives import with_alternatives
from kdoctor_checks.versions._drivers import too_old, unknown_driver


@check("versions.driver-for-ptx", severity=Severity.ERROR, needs_gpus=True, requires=["versions.gpu-code"])
def driver_for_ptx(
    tensorflow: TensorFlowBuild,
    gpus: Gpus,
    environment: Environment,
    packages: Packages,
    target: Target,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """The NVIDIA driver can compile TensorFlow's PTX for GPUs that need it.

    Why: CUDA's minor-version compatibility covers machine code, not PTX. A GPU without machine code in the build needs
    a driver that knows the build's version of PTX. TensorFlow has two kinds of kernels. The generated ones of 2.17 to
    2.21 have no machine code for Hopper, so H100 and H200 need driver 545 from 2.17 and 555 from 2.19. On an older
    driver those kernels fail with CUDA_ERROR_UNSUPPORTED_PTX_VERSION, while other GPUs run the same TensorFlow.
    Remedy: install a driver that knows that version of PTX, NVIDIA's forward-compatibility package (cuda-compat, on
    data-center GPUs), or a TensorFlow with machine code for the GPU.
    Sources:
        https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
        https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
        https://docs.nvidia.com/cuda/parallel-thread-execution/#release-notes
    Failure modes: ptx_newer_than_driver
    """
    code, cuda = code_of(tensorflow, matrix), cuda_of(tensorflow, matrix)
    if code is None or cuda is None:
        reason = tensorflow.unreadable or "neither the build nor the version matrix states them"
        yield Unjudged(subject="tensorflow", reason=f"its GPU code and CUDA release are unknown: {reason}")
        return

    def judge(gpu: Gpu, capability: str) -> Outcome:
        needing = [each for each in code.kernels if each.runs_on(capability) == "PTX"]
        if not needing:
            return Evidence(subject=gpu.subject, observed=f"machine code for {capability}; needs no PTX")
        newest = max(needing, key=lambda each: numbers(matrix.ptx_driver(each, cuda)) or ())
        outcome = _judge_ptx(gpu, gpus, newest, cuda, target, matrix)
        if isinstance(outcome, Finding):
            return with_alternatives(outcome, gpu, gpus, packages, target, matrix)
        return outcome

    yield from judge_gpus(gpus, environment, judge)


def _judge_ptx(gpu: Gpu, gpus: Gpus, kernels: Kernels, cuda: str, target: Target, matrix: VersionMatrix) -> Outcome:
    driver, least = numbers(gpus.driver_version), matrix.ptx_driver(kernels, cuda)
    if not target.platform.startswith("linux"):
        reason = f"the required drivers are known for Linux only, not for {target.platform}"
        return Unjudged(subject=gpu.subject, reason=reason)
    ptx = f"PTX {kernels.ptx_isa}" if kernels.ptx_isa else f"PTX of CUDA {cuda}"
    if driver is None or least is None:
        reason = unknown_driver(gpus) if driver is None else f"the driver that compiles {ptx} is unknown"
        return Unjudged(subject=gpu.subject, reason=reason)
    observed = f"compute capability {gpu.compute_capability} needs {ptx}; driver {gpus.driver_version}"
    if driver >= (numbers(least) or ()):
        return Evidence(subject=gpu.subject, observed=f"{observed} compiles it ({least} and newer do)")
    # cuda-compat replaces the driver's libraries, its PTX compiler included. They report a newer CUDA then.
    offered, needed = numbers(gpus.cuda_driver_version), numbers(matrix.ptx_cuda(kernels, cuda))
    if offered is not None and needed is not None and offered >= needed[:2]:
        reason = f"{observed} is too old, but supports CUDA {gpus.cuda_driver_version}; cuda-compat may bridge the gap"
        return Unjudged(subject=gpu.subject, reason=reason)
    brief = f"driver {gpus.driver_version} cannot compile TensorFlow's PTX for it"
    reason = f", which compiles {ptx}"
    return too_old(gpu.subject, f"{observed} is too old to compile it", least, reason, gpus, matrix, brief=brief)
