"""Whether the driver is new enough for the CUDA that TensorFlow was built against."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, Target, TensorFlowBuild
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._cuda import MINIMUM_DRIVERS
from kdoctor_checks._versions import numbers

_SUBJECT = "NVIDIA driver"


@check(
    "versions.driver-for-cuda",
    severity=Severity.ERROR,
    needs_gpus=True,
    requires=["versions.cuda-build", "driver.library-matches-module"],
)
def driver_for_cuda(tensorflow: TensorFlowBuild, gpus: Gpus, target: Target) -> Iterator[Outcome]:
    """The NVIDIA driver is new enough for the CUDA release that TensorFlow was built against.

    Why: an older driver cannot run programs of a newer major CUDA release. TensorFlow then registers no GPU and
    the job falls back to the CPU, or stops with CUDA_ERROR_INSUFFICIENT_DRIVER.
    Remedy: install a driver of a newer branch and restart, or a TensorFlow that was built against the driver's
    CUDA.
    Source: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
    """
    cuda, driver = numbers(tensorflow.cuda_version), numbers(gpus.driver_version)
    if not target.platform.startswith("linux"):
        yield Unjudged(subject=_SUBJECT, reason=f"the known minimums are those of Linux, not of {target.platform}")
    elif cuda is None:
        reason = tensorflow.unreadable or "the build does not state it"
        yield Unjudged(subject=_SUBJECT, reason=f"TensorFlow's CUDA release is unknown: {reason}")
    elif driver is None:
        error = gpus.errors.get("driver_version") or f"it says {gpus.driver_version!r}"
        yield Unjudged(subject=_SUBJECT, reason=f"the driver's version is unknown: {error}")
    elif cuda[0] not in MINIMUM_DRIVERS:
        yield Unjudged(subject=_SUBJECT, reason=f"no minimum driver is known for CUDA {cuda[0]}")
    else:
        yield _judge(tensorflow, gpus, cuda[0])


def _judge(tensorflow: TensorFlowBuild, gpus: Gpus, major: int) -> Outcome:
    least = MINIMUM_DRIVERS[major]
    observed = f"driver {gpus.driver_version}, TensorFlow built against CUDA {tensorflow.cuda_version}"
    if (numbers(gpus.driver_version) or ()) >= (numbers(least) or ()):
        return Evidence(subject=_SUBJECT, observed=f"{observed} (CUDA {major} needs {least})")
    offered = numbers(gpus.cuda_driver_version)
    if offered is None or offered[0] >= major:
        # A cuda-compat package brings a newer user-space driver, on data-centre GPUs: then the old module suffices.
        said = f"offers CUDA {gpus.cuda_driver_version}" if offered else "does not say which CUDA it offers"
        reason = f"{observed}: older than {least}, but the driver {said}; a cuda-compat package may bridge the gap"
        return Unjudged(subject=_SUBJECT, reason=reason)
    branch = least.partition(".")[0]
    return Finding(
        subject=_SUBJECT,
        observed=observed,
        expected=f"driver {least} or newer for CUDA {major}",
        remedy=Remedy(
            summary=f"Install a driver of branch {branch} or newer from the distribution's packages (the command is "
            "Ubuntu's) and restart; in a container, on the host.",
            action=Action.REBOOT,
            commands=(f"sudo apt-get install nvidia-driver-{branch}", "sudo reboot"),
        ),
        rollback=_previous_driver(gpus.driver_version or ""),
    )


def _previous_driver(version: str) -> Rollback:
    branch = version.partition(".")[0]
    return Rollback.to(
        f"the driver {version} (Ubuntu's packages)",
        f"sudo apt-get install --allow-downgrades 'nvidia-driver-{branch}={version}-*'",
        "sudo reboot",
    )
