from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelLog, PciDevices, Unavailable
from kdoctor.model import Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._kernel_log import LOG_UNREAD
from kdoctor_checks.topology._sxids import classify, codes, guided, nothing_logged, summary, sxids

_REMEDY = Remedy.inspect(
    "Look up the SXid in the fabric manager guide, and watch whether it returns.",
    "sudo dmesg | grep -i sxid",
    "sudo journalctl -u nvidia-fabricmanager",
)


@check("topology.nvswitch-warnings", severity=Severity.INFO, needs_gpus=True, unread=LOG_UNREAD)
def nvswitch_warnings(log: KernelLog, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> Iterator[Outcome]:
    """The kernel logged no non-fatal NVSwitch error.

    Why: a non-fatal SXid ended a transfer, usually because of a program, and the switch keeps working. Many of them
    without a failing program indicate a failing link.
    Remedy: look up the SXid in the fabric manager guide, and watch whether it returns.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
        https://docs.nvidia.com/deploy/xid-errors/
    """
    lesser = {
        subject: kept
        for subject, events in sxids(log).items()
        if (kept := [event for event in events if classify(event) == "lesser"])
    }
    for subject, events in lesser.items():
        yield Finding(
            subject=subject,
            observed=f"non-fatal {summary(events)}",
            brief=f"non-fatal {codes(events)}",
            noted=True,
            expected="no SXid",
            remedy=guided(events, _REMEDY),
        )
    if not lesser and any(classify(event) == "unclassified" for events in sxids(log).values() for event in events):
        reason = "an SXid may be non-fatal (see topology.nvswitch-errors)"
        yield Unjudged(subject="kernel log", reason=reason, explained_by=("topology.nvswitch-errors",))
    elif not lesser:
        yield nothing_logged(log, gpus, pci, "non-fatal SXid")
