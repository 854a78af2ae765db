from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import DRIVER, too_new, unsupported

_SUBJECT = "confidential computing"


@check("driver.confidential-computing", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def confidential_computing(gpus: Gpus) -> Iterator[Outcome]:
    """Confidential computing is off, or ready for multiple GPUs.

    Why: with confidential computing, a GPU accepts no work before it is set ready. Without a multi-GPU mode (protected
    PCIe), GPUs cannot exchange data directly.
    Remedy: set the GPUs ready after attestation; for multiple GPUs, use a machine with a multi-GPU mode.
    Sources:
        https://developer.nvidia.com/blog/confidential-computing-on-h100-gpus-for-secure-and-trustworthy-ai/
        https://docs.nvidia.com/deploy/nvml-api/
    """
    error = gpus.errors.get("conf_compute")
    if gpus.conf_compute:
        yield from _judge(gpus)
    elif gpus.conf_compute is False:
        yield Evidence(subject=_SUBJECT, observed="off")
    elif unsupported(error) or too_new(error):
        yield NotApplicable(reason=f"this driver or machine does not support confidential computing ({error})")
    else:
        yield Unjudged(subject=_SUBJECT, reason=f"its state was not read ({error or 'no reason given'})")


def _judge(gpus: Gpus) -> Iterator[Outcome]:
    if gpus.conf_compute_ready is None:
        error = gpus.errors.get("conf_compute_ready", "no reason given")
        yield Unjudged(subject=_SUBJECT, reason=f"on, but the ready state of the GPUs was not read ({error})")
    elif not gpus.conf_compute_ready:
        remedy = _remedy("Set the GPUs ready after attestation.", "sudo nvidia-smi conf-compute -srs 1")
        yield _finding("on, but the GPUs are not ready", "ready GPUs", remedy)
    else:
        yield Evidence(subject=_SUBJECT, observed="on, and the GPUs are ready")
    if len(gpus.devices) == 1:
        return
    if gpus.conf_compute_multi_gpu is None:
        error = gpus.errors.get("conf_compute_multi_gpu", "no reason given")
        yield Unjudged(subject=_SUBJECT, reason=f"on, but its multi-GPU mode was not read ({error})")
    elif gpus.conf_compute_multi_gpu == "none":
        remedy = _remedy("Use a machine with a multi-GPU mode, or train on one GPU.")
        yield _finding("on without a multi-GPU mode", "a multi-GPU mode", remedy)
    else:
        yield Evidence(subject=_SUBJECT, observed=f"on, multi-GPU mode {gpus.conf_compute_multi_gpu}")


def _remedy(summary: str, *commands: str) -> Remedy:
    look = ("nvidia-smi conf-compute -f", "nvidia-smi conf-compute -mgm")
    return Remedy.configure(summary, *commands, look=look)


def _finding(observed: str, expected: str, remedy: Remedy) -> Finding:
    return Finding(
        subject=_SUBJECT,
        observed=observed,
        expected=f"off, or {expected}",
        remedy=remedy,
        rollback=Rollback.nothing("not needed (the next restart resets the ready state)"),
    )
