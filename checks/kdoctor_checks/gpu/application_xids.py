from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelLog, Unavailable
from kdoctor.model import Action, Outcome, Remedy, Severity
from kdoctor_checks._gpus import READ_ONLY
from kdoctor_checks._kernel_log import LOG_UNREAD, XID_RECOVERY, XID_REMAPPING, by_device, is_failure, judge_devices

_REMEDY = Remedy(
    summary="Look up the Xid in NVIDIA's catalog, and check the program named in the log line.",
    action=Action.CHANGE_CODE,
    commands=("sudo dmesg | grep -i xid",),
)


@check("gpu.application-xids", severity=Severity.INFO, needs_gpus=True)
def application_xids(log: KernelLog | Unavailable, gpus: Gpus | Unavailable) -> Iterator[Outcome]:
    """The kernel logged no Xid caused by a program.

    Why: Xids 13, 31 and 43 usually mean that a program accessed memory out of bounds or ran an illegal instruction. If
    a program that is known to work triggers them, the GPU may be faulty. Xids that are not a known failure
    (gpu.kernel-log) are also reported here.
    Remedy: look up the Xid in NVIDIA's catalog, and check the program named in the log line.
    Sources:
        https://docs.nvidia.com/deploy/xid-errors/
        https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
    """
    if not isinstance(log, KernelLog):
        yield LOG_UNREAD
        return
    elsewhere = (XID_REMAPPING, XID_RECOVERY)
    events = [item for item in log.events if item.kind == "xid" and item.code not in elsewhere and not is_failure(item)]
    yield from judge_devices(log, by_device(events), gpus, expected="no Xid", remedy=_REMEDY, rollback=READ_ONLY)
