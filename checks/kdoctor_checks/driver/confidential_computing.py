"""Whether confidential computing lets several GPUs work together."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import too_new, unsupported

_SUBJECT = "confidential computing"


@check(
    "driver.confidential-computing",
    severity=Severity.ERROR,
    needs_gpus=True,
    requires=["driver.library-matches-module"],
)
def confidential_computing(gpus: Gpus) -> Iterator[Outcome]:
    """Confidential computing is off, or lets several GPUs work together and has them ready.

    Why: under it a GPU takes no work before it is set ready, and without a multi-GPU mode (protected PCIe) each GPU
    works for itself: there is no peer-to-peer traffic.
    Remedy: set the GPUs ready after their attestation; use a machine with a multi-GPU mode for several GPUs.
    Sources:
        https://developer.nvidia.com/blog/confidential-computing-on-h100-gpus-for-secure-and-trustworthy-ai/
        https://docs.nvidia.com/deploy/nvml-api/
    """
    error = gpus.errors.get("conf_compute")
    if gpus.conf_compute is False:
        yield Evidence(subject=_SUBJECT, observed="off")
    elif gpus.conf_compute is None and (unsupported(error) or too_new(error)):
        yield NotApplicable(reason=f"this driver or machine knows no confidential computing ({error})")
    elif gpus.conf_compute is None:
        yield Unjudged(subject=_SUBJECT, reason=f"whether it is on was not read ({error or 'no reason given'})")
    else:
        yield from _judge(gpus)


def _judge(gpus: Gpus) -> Iterator[Outcome]:
    if gpus.conf_compute_ready is None:
        error = gpus.errors.get("conf_compute_ready", "no reason given")
        yield Unjudged(subject=_SUBJECT, reason=f"on, but whether the GPUs are ready was not read ({error})")
    elif not gpus.conf_compute_ready:
        yield _finding("on, and the GPUs are not ready", "GPUs that are ready", "sudo nvidia-smi conf-compute -srs 1")
    else:
        yield Evidence(subject=_SUBJECT, observed="on, and the GPUs are ready")
    if len(gpus.devices) == 1:
        return
    if gpus.conf_compute_multi_gpu is None:
        error = gpus.errors.get("conf_compute_multi_gpu", "no reason given")
        yield Unjudged(subject=_SUBJECT, reason=f"on, but its multi-GPU mode was not read ({error})")
    elif gpus.conf_compute_multi_gpu == "none":
        yield _finding("on, without a multi-GPU mode", "a multi-GPU mode", "nvidia-smi conf-compute -mgm")
    else:
        yield Evidence(subject=_SUBJECT, observed=f"on, multi-GPU mode {gpus.conf_compute_multi_gpu}")


def _finding(observed: str, expected: str, command: str) -> Finding:
    return Finding(
        subject=_SUBJECT,
        observed=observed,
        expected=f"off, or {expected}",
        remedy=Remedy(
            summary="Set the GPUs ready after their attestation; for several GPUs use a machine with a multi-GPU mode.",
            action=Action.CONFIGURE,
            commands=("nvidia-smi conf-compute -f", command),
        ),
        rollback=Rollback.nothing("the ready state ends with the next restart"),
    )
