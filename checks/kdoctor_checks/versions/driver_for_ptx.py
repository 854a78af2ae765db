"""Whether the driver compiles the build's PTX, where a GPU needs it."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, Gpu, Gpus, Target, TensorFlowBuild
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._builds import code_of, cuda_of, gpus_of_job
from kdoctor_checks._gpus import unread
from kdoctor_checks._versions import numbers, parse_version
from kdoctor_checks.versions._drivers import previous_driver, upgrade_commands


@check("versions.driver-for-ptx", severity=Severity.ERROR, needs_gpus=True, requires=["versions.gpu-code"])
def driver_for_ptx(
    tensorflow: TensorFlowBuild, gpus: Gpus, environment: Environment, target: Target, matrix: VersionMatrix
) -> Iterator[Outcome]:
    """Where a GPU has only PTX to run, the driver is as new as the CUDA toolkit that made it.

    Why: the compatibility of CUDA's minor releases covers machine code, not PTX. A GPU that is newer than the build's
    machine code then fails with CUDA_ERROR_UNSUPPORTED_PTX_VERSION, on a driver that runs the same TensorFlow on
    other GPUs.
    Remedy: install a driver as new as the build's toolkit, or a TensorFlow with machine code for the GPU.
    Sources:
        https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
        https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/
    Failure modes: ptx_newer_than_driver
    """
    code, cuda = code_of(tensorflow, matrix), cuda_of(tensorflow, matrix)
    if code is None or cuda is None:
        said = tensorflow.unreadable or "neither the build nor the version matrix says it"
        yield Unjudged(subject="tensorflow", reason=f"what code it holds and by which CUDA is unknown: {said}")
        return
    for gpu in gpus_of_job(gpus, environment):
        if missing := unread(gpu, "compute_capability"):
            yield missing
        elif parse_version(gpu.compute_capability) is None:
            yield Unjudged(subject=gpu.subject, reason=f"{gpu.compute_capability!r} is no compute capability")
        elif code.runs_by(gpu.compute_capability or "") == "machine code":
            yield Evidence(subject=gpu.subject, observed=f"machine code for {gpu.compute_capability}; no PTX is needed")
        else:
            yield _judge(gpu, gpus, cuda, (target, matrix))
    if not gpus.devices:
        yield Unjudged(subject="GPUs", reason=f"the driver lists none ({gpus.error or gpus.state})")


def _judge(gpu: Gpu, gpus: Gpus, cuda: str, known: tuple[Target, VersionMatrix]) -> Outcome:
    target, matrix = known
    driver, needed = numbers(gpus.driver_version), matrix.ptx_drivers(cuda)
    reason: str | None = None
    if not target.platform.startswith("linux"):
        reason = f"the known drivers are those of Linux, not of {target.platform}"
    elif driver is None:
        error = gpus.errors.get("driver_version") or f"it says {gpus.driver_version!r}"
        reason = f"the driver's version is unknown: {error}"
    elif needed is None:
        reason = f"no driver is known that compiles PTX of CUDA {cuda}"
    if driver is None or needed is None or reason:
        return Unjudged(subject=gpu.subject, reason=reason or "")
    perhaps, surely = needed
    observed = f"compute capability {gpu.compute_capability} runs by PTX of CUDA {cuda}, and the driver is "
    observed += f"{gpus.driver_version}"
    if driver >= (numbers(surely) or ()):
        return Evidence(subject=gpu.subject, observed=f"{observed} (CUDA {cuda} came with {surely})")
    if driver >= (numbers(perhaps) or ()):
        reason = f"{observed}: between {perhaps} and {surely}, and which patch of CUDA {cuda} it was is not known"
        return Unjudged(subject=gpu.subject, reason=reason)
    offered = numbers(gpus.cuda_driver_version)
    if offered is not None and offered >= (numbers(cuda) or ())[:2]:
        reason = f"{observed}: too old, but it offers CUDA {gpus.cuda_driver_version}; cuda-compat may bridge the gap"
        return Unjudged(subject=gpu.subject, reason=reason)
    return Finding(
        subject=gpu.subject,
        observed=observed,
        expected=f"driver {surely} or newer, which came with CUDA {cuda}",
        remedy=Remedy(
            summary=f"Install a driver of branch {surely.partition('.')[0]} or newer from the distribution's packages "
            "(the command is Ubuntu's) and restart; in a container, on the host. kdoctor matrix names the TensorFlow "
            "that runs on the present one.",
            action=Action.REBOOT,
            commands=(f"kdoctor matrix --driver {gpus.driver_version}", *upgrade_commands(surely)),
        ),
        rollback=previous_driver(gpus.driver_version or ""),
    )
