"""Whether the kernel logged a failure of a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelLog, KernelLogEvent, PciDevices, Unavailable
from kdoctor.model import Finding, Outcome, Severity
from kdoctor_checks._gpus import NOTHING_CHANGED, RESET_NEEDED, lost_addresses
from kdoctor_checks._kernel_log import LOG_UNREAD, by_device, is_failure, log_subject, nothing_logged, summary

_KINDS = ("fallen-off-the-bus", "init-failed", "gsp-failed")


@check("gpu.kernel-log", severity=Severity.ERROR, needs_gpus=True)
def kernel_log(
    log: KernelLog | Unavailable, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable
) -> Iterator[Outcome]:
    """The kernel logged no failure of a GPU since it was started.

    Why: the driver reports faults as Xids, and some GPUs fall off the bus with no Xid at all. Memory errors (48, 64,
    95), NVLink errors (74, 149), firmware that does not answer (119, 120) and a pending recovery action (154) come
    back under load, and take the job along. Xid 94 is contained: it ended one program, and the bad memory is in use
    until the GPU is reset. A GPU that does not answer is told by gpu.responding; a program's own errors by
    gpu.application-xids. The log may not be readable: then this is skipped, and driver.kernel-log says so.
    Remedy: reset the GPU or restart; where it comes back, have the GPU examined.
    Sources:
        https://docs.nvidia.com/deploy/xid-errors/
        https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
        https://docs.nvidia.com/health-validation/reference/checks/xid.md
        https://github.com/NVIDIA/NVSentinel/issues/155
    """
    if not isinstance(log, KernelLog):
        yield LOG_UNREAD
        return
    told = lost_addresses(gpus, pci) if isinstance(gpus, Gpus) else frozenset[str]()
    events = [event for event in log.events if is_failure(event) or event.kind in _KINDS]
    devices = by_device(event for event in events if event.bus_id not in told)
    for bus_id, logged in devices.items():
        yield _finding(log_subject(bus_id, gpus), logged)
    if not devices:
        yield nothing_logged(log)


def _finding(subject: str, logged: Sequence[KernelLogEvent]) -> Finding:
    return Finding(
        subject=subject,
        observed=summary(logged),
        expected="no failure in the kernel's log since the machine was started",
        remedy=RESET_NEEDED,
        rollback=NOTHING_CHANGED,
    )
