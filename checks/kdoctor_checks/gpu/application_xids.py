"""Whether the kernel logged errors that programs made on the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelLog, Unavailable
from kdoctor.model import Action, Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import LOOKING
from kdoctor_checks._kernel_log import (
    LOG_UNREAD,
    XID_RECOVERY,
    XID_REMAPPING,
    by_device,
    is_failure,
    log_subject,
    nothing_logged,
    summary,
)


@check("gpu.application-xids", severity=Severity.INFO, needs_gpus=True)
def application_xids(log: KernelLog | Unavailable, gpus: Gpus | Unavailable) -> Iterator[Outcome]:
    """The kernel logged no error that programs made on a GPU.

    Why: Xids 13, 31 and 43 point at the program that ran: an access outside of its arrays, or a wrong instruction. A
    GPU that shows them under programs that are known to be right may be faulty. Xids that stand neither here nor
    among the failures (gpu.kernel-log) are told here, too.
    Remedy: look the Xid up in NVIDIA's catalogue, and at the program that the line names.
    Sources:
        https://docs.nvidia.com/deploy/xid-errors/
        https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
    """
    if not isinstance(log, KernelLog):
        yield LOG_UNREAD
        return
    apart = (XID_REMAPPING, XID_RECOVERY)
    events = [item for item in log.events if item.kind == "xid" and item.code not in apart and not is_failure(item)]
    for bus_id, logged in by_device(events).items():
        yield Finding(
            subject=log_subject(bus_id, gpus),
            observed=summary(logged),
            expected="no Xid",
            remedy=Remedy(
                summary="Look the Xid up in NVIDIA's catalogue, and at the program that the line names.",
                action=Action.CHANGE_CODE,
                commands=("sudo dmesg | grep -i xid",),
            ),
            rollback=LOOKING,
        )
    if not events:
        yield nothing_logged(log)
