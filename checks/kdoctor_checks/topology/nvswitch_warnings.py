"""Whether the kernel logged lesser errors of NVSwitches."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KernelLog, Unavailable
from kdoctor.model import Action, Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import LOOKING
from kdoctor_checks._kernel_log import LOG_UNREAD, nothing_logged
from kdoctor_checks.topology._sxids import is_fatal, sxids


@check("topology.nvswitch-warnings", severity=Severity.INFO, needs_gpus=True)
def nvswitch_warnings(log: KernelLog | Unavailable) -> Iterator[Outcome]:
    """The kernel logged no error of an NVSwitch that is not fatal.

    Why: an SXid that is not fatal ended a transfer, mostly because a program did; the switch works on. Many of them,
    without a program that failed, announce a link that is failing.
    Remedy: look the SXid up in the fabric manager's guide; watch whether it comes back.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
        https://docs.nvidia.com/deploy/xid-errors/
    """
    if not isinstance(log, KernelLog):
        yield LOG_UNREAD
        return
    lesser = {
        subject: [event for event in events if not is_fatal(event)]
        for subject, events in sxids(log).items()
        if not all(map(is_fatal, events))
    }
    for subject, events in lesser.items():
        yield Finding(
            subject=subject,
            observed=f"SXid {', '.join(sorted({str(event.code) for event in events}))}; last: {events[-1].text!r}",
            expected="no SXid",
            remedy=Remedy(
                summary="Look the SXid up in the fabric manager's guide; watch whether it comes back.",
                action=Action.INSPECT_HARDWARE,
                commands=("sudo dmesg | grep -i sxid", "sudo journalctl -u nvidia-fabricmanager"),
            ),
            rollback=LOOKING,
        )
    if not lesser:
        yield nothing_logged(log)
