from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KernelLog, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._kernel_log import by_device, codes, log_subject, summary
from kdoctor_watch.facts import Watched

_REMEDY = Remedy.inspect(
    "Look up the Xid in NVIDIA's catalog, save a checkpoint, and examine the GPU.",
    "sudo dmesg | grep -iE 'NVRM|Xid'",
    "nvidia-smi -L",
)
_KINDS = {"xid", "sxid", "fallen-off-the-bus", "gsp-failed", "reset-required", "uvm-fatal", "hardware-error", "crash"}


@check("watch.kernel-log", severity=Severity.WARNING)
def kernel_log(watched: Watched, log: KernelLog | Unavailable) -> Iterator[Outcome]:
    """The kernel logs no Xid while the job runs.

    Why: the driver reports faults of a GPU as Xids in the kernel log, often before the job notices. Only lines of the
    time of the training count.
    Remedy: look up the Xid. Save a checkpoint while it is possible, and examine the GPU.
    Source: https://docs.nvidia.com/deploy/xid-errors/
    """
    if not any("GPU:" in device for device in watched.devices):
        yield NotApplicable(reason="the job trains on the CPU")
        return
    if isinstance(log, Unavailable):
        yield Unjudged(subject="kernel log", reason=log.unavailable)
        return
    events = [event for event in log.events if event.kind in _KINDS]
    for bus_id, found in by_device(events).items():
        yield Finding(
            subject=log_subject(bus_id, {}),
            observed=summary(found),
            brief=codes(found),
            expected="no Xid during the training",
            remedy=_REMEDY,
        )
    if not events:
        yield Evidence(subject="kernel log", observed=f"no Xid in {log.lines} new lines of {log.source}")
