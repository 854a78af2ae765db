"""Whether the kernel logged a bad memory row whose state the driver does not tell."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelLog, Unavailable
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks._gpus import NOTHING_CHANGED
from kdoctor_checks._kernel_log import (
    LOG_UNREAD,
    XID_REMAPPING,
    by_device,
    is_failure,
    log_subject,
    nothing_logged,
    summary,
)


@check("gpu.logged-remapping", severity=Severity.WARNING, needs_gpus=True)
def logged_remapping(log: KernelLog | Unavailable, gpus: Gpus | Unavailable) -> Iterator[Outcome]:
    """The kernel logged no remapped row or retired page whose state the driver does not tell.

    Why: Xid 63 says that a row or page with errors was marked, and waits for a reset. Where the driver tells what is
    pending, gpu.row-remapping-pending and gpu.retired-pages-pending judge it; where it does not, the log is all there
    is.
    Remedy: look whether something is pending, and reset the GPU.
    Sources:
        https://docs.nvidia.com/deploy/xid-errors/
        https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html
    """
    if not isinstance(log, KernelLog):
        yield LOG_UNREAD
        return
    failed = {event.bus_id for event in log.events if is_failure(event)}
    events = [event for event in log.events if event.kind == "xid" and event.code == XID_REMAPPING]
    devices = by_device(event for event in events if event.bus_id not in failed)
    telling = {
        gpu.bus_id
        for gpu in (gpus.devices if isinstance(gpus, Gpus) else ())
        if gpu.remapped_rows_pending is not None or gpu.retired_pages_pending is not None
    }
    for bus_id, logged in devices.items():
        if bus_id in telling:
            yield Evidence(subject=log_subject(bus_id, gpus), observed="Xid 63, and the driver tells what is pending")
            continue
        yield Finding(
            subject=log_subject(bus_id, gpus),
            observed=summary(logged),
            expected="no Xid 63, or a driver that tells what is pending",
            remedy=Remedy(
                summary="Look whether something is pending; if so, reset the GPU or restart.",
                action=Action.REBOOT,
                commands=("nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT", "sudo nvidia-smi --gpu-reset"),
            ),
            rollback=NOTHING_CHANGED,
        )
    if events and not devices:
        yield NotApplicable(reason="Xid 63 stands beside a failure that gpu.kernel-log tells")
    elif not devices:
        yield nothing_logged(log)
