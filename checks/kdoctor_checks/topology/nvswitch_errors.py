from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelLog, PciDevices, Unavailable
from kdoctor.model import Finding, Outcome, Severity, Unjudged
from kdoctor_checks._gpus import RESET_NEEDED, RESTART
from kdoctor_checks._kernel_log import LOG_UNREAD
from kdoctor_checks.topology._sxids import classify, codes, guided, nothing_logged, summary, sxids


@check("topology.nvswitch-errors", severity=Severity.ERROR, needs_gpus=True, unread=LOG_UNREAD)
def nvswitch_errors(log: KernelLog, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> Iterator[Outcome]:
    """The kernel logged no fatal NVSwitch error.

    Why: NVSwitches report errors as SXids. After a fatal one, the links through the switch are down until it is reset,
    and jobs on its GPUs fail. A code that the fabric manager guide does not list is unknown.
    topology.nvswitch-warnings reports non-fatal ones.
    Remedy: restart the machine, or reset all GPUs and switches together. If it returns, have the switch serviced.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
        https://docs.nvidia.com/deploy/xid-errors/
    """
    found = False
    for subject, events in sxids(log).items():
        fatal = [event for event in events if classify(event) == "fatal"]
        unknown = [event for event in events if classify(event) == "unclassified"]
        found |= bool(fatal or unknown)
        if unknown:
            yield Unjudged(subject=subject, reason=f"{summary(unknown)} is not in the fabric manager guide")
        if not fatal:
            continue
        yield Finding(
            subject=subject,
            observed=f"fatal {summary(fatal)}",
            brief=f"fatal {codes(fatal)}",
            expected="no fatal SXid",
            remedy=guided(fatal, RESET_NEEDED),
            rollback=RESTART,
        )
    if not found:
        yield nothing_logged(log, gpus, pci, "fatal SXid")
