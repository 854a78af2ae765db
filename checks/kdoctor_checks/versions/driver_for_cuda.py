"""Whether the driver is new enough for the CUDA that TensorFlow was built against."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, Target, TensorFlowBuild
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._builds import cuda_of
from kdoctor_checks._versions import numbers
from kdoctor_checks.versions._drivers import previous_driver, upgrade_commands

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
    """The NVIDIA driver is new enough for the CUDA release that TensorFlow was built against.

    Why: an older driver cannot run programs of a newer major CUDA release. TensorFlow then registers no GPU and
    the job falls back to the CPU, or stops with CUDA_ERROR_INSUFFICIENT_DRIVER.
    Remedy: install a driver of a newer branch and restart, or a TensorFlow that was built against the driver's
    CUDA.
    Source: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
    """
    cuda, driver = cuda_of(tensorflow, matrix), numbers(gpus.driver_version)
    least = matrix.oldest_driver(cuda) if cuda else None
    if not target.platform.startswith("linux"):
        yield Unjudged(subject=_SUBJECT, reason=f"the known minimums are those of Linux, not of {target.platform}")
    elif cuda is None:
        reason = tensorflow.unreadable or "neither the build nor the version matrix states it"
        yield Unjudged(subject=_SUBJECT, reason=f"TensorFlow's CUDA release is unknown: {reason}")
    elif driver is None:
        error = gpus.errors.get("driver_version") or f"it says {gpus.driver_version!r}"
        yield Unjudged(subject=_SUBJECT, reason=f"the driver's version is unknown: {error}")
    elif least is None:
        yield Unjudged(subject=_SUBJECT, reason=f"no minimum driver is known for CUDA {cuda.partition('.')[0]}")
    else:
        yield _judge(gpus, cuda, least)


def _judge(gpus: Gpus, cuda: str, least: str) -> Outcome:
    observed = f"driver {gpus.driver_version}, TensorFlow built against CUDA {cuda}"
    major = int(cuda.partition(".")[0])
    if (numbers(gpus.driver_version) or ()) >= (numbers(least) or ()):
        return Evidence(subject=_SUBJECT, observed=f"{observed} (CUDA {major} needs {least})")
    offered = numbers(gpus.cuda_driver_version)
    if offered is None or offered[0] >= major:
        # A cuda-compat package brings a newer user-space driver, on data-centre GPUs: then the old module suffices.
        said = f"offers CUDA {gpus.cuda_driver_version}" if offered else "does not say which CUDA it offers"
        reason = f"{observed}: older than {least}, but the driver {said}; a cuda-compat package may bridge the gap"
        return Unjudged(subject=_SUBJECT, reason=reason)
    return Finding(
        subject=_SUBJECT,
        observed=observed,
        expected=f"driver {least} or newer for CUDA {major}",
        remedy=Remedy(
            summary=f"Install a driver of branch {least.partition('.')[0]} or newer from the distribution's packages "
            "(the command is Ubuntu's) and restart; in a container, on the host. kdoctor matrix names the TensorFlow "
            "that runs on the present one.",
            action=Action.REBOOT,
            commands=(*upgrade_commands(least), f"kdoctor matrix --driver {gpus.driver_version}"),
        ),
        rollback=previous_driver(gpus.driver_version or ""),
    )
