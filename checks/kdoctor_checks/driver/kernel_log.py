from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KernelLog
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted

_SUBJECT = "kernel log"


@check("driver.kernel-log", severity=Severity.WARNING, needs_gpus=True)
def kernel_log(log: KernelLog) -> Iterator[Outcome]:
    """The kernel log can be read and is complete since boot.

    Why: the driver reports faults in the kernel log first, and some faults only there. If the log cannot be read
    (kernel.dmesg_restrict, containers), or its beginning was overwritten, an earlier fault may go unnoticed. Checks of
    its events are then skipped, or judge only what remains.
    Remedy: run kdoctor as a user who may read the log, or pass it a saved log. If the log belongs to the host, waive
    this check in the checklist.
    Sources:
        https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
        https://docs.nvidia.com/deploy/xid-errors/
    """
    if log.complete is False:
        reason = f"{counted(log.lines, 'line')} of {log.source} read, but earlier lines since boot were overwritten"
        yield Unjudged(subject=_SUBJECT, reason=reason)
    elif not log.lines:
        yield Unjudged(subject=_SUBJECT, reason=f"{log.source} is empty")
    elif log.complete is None:
        reason = f"{counted(log.lines, 'line')} of {log.source} read, but they do not begin with the boot (an excerpt)"
        yield Unjudged(subject=_SUBJECT, reason=reason)
    else:
        clean = "kernel log clean since boot" if not log.events else ""
        observed = f"{counted(log.lines, 'line')} of {log.source} since boot"
        yield Evidence(subject=_SUBJECT, observed=observed, brief=clean)
