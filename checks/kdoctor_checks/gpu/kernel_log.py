from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelLog, PciDevices, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._gpus import RESET_NEEDED, RESTART, lost_addresses
from kdoctor_checks._kernel_log import LOG_UNREAD, by_device, is_failure, judge_devices

_KINDS = ("fallen-off-the-bus", "init-failed", "gsp-failed")


@check("gpu.kernel-log", severity=Severity.ERROR, needs_gpus=True)
def kernel_log(
    log: KernelLog | Unavailable, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable
) -> Iterator[Outcome]:
    """The kernel has logged no GPU failure since boot.

    Why: the driver logs faults as Xids, and some GPUs fall off the bus without one. Memory errors (48, 64, 95), NVLink
    errors (74, 149), unresponsive firmware (119, 120) and pending recovery actions (154) return under load and end the
    job. Xid 94 is contained: it ended one program, but the bad memory stays in use until the GPU is reset. GPUs that do
    not respond are reported by gpu.responding, program errors by gpu.application-xids. If the log is not readable, this
    check is skipped and driver.kernel-log gives the reason.
    Remedy: reset the GPU or restart the machine. If the error returns, have the GPU serviced.
    Sources:
        https://docs.nvidia.com/deploy/xid-errors/
        https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
        https://docs.nvidia.com/health-validation/reference/checks/xid.md
        https://github.com/NVIDIA/NVSentinel/issues/155
    """
    if not isinstance(log, KernelLog):
        yield LOG_UNREAD
        return
    reported = lost_addresses(gpus, pci) if isinstance(gpus, Gpus) else frozenset[str]()
    events = [event for event in log.events if is_failure(event) or event.kind in _KINDS]
    devices = by_device(event for event in events if event.bus_id not in reported)
    expected = "no failure in the kernel log since boot"
    yield from judge_devices(log, devices, gpus, expected=expected, remedy=RESET_NEEDED, rollback=RESTART)
