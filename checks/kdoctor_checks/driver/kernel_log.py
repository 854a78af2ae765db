"""Whether the kernel's log can be read."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KernelLog
from kdoctor.model import Evidence, Outcome, Severity, Unjudged


@check("driver.kernel-log", severity=Severity.WARNING, needs_gpus=True)
def kernel_log(log: KernelLog) -> Iterator[Outcome]:
    """The kernel's log can be read, back to the machine's start.

    Why: the driver tells of faults in the kernel's log first, and of some nowhere else. Where the log may not be read
    (kernel.dmesg_restrict, containers), or its beginning was overwritten, a fault before now may go unnoticed. The
    checks of what it says are then skipped, or judge what is left of it.
    Remedy: run kdoctor as a user who may read the log, or give it a saved one; accept this in the checklist where the
    log is the host's business.
    Sources:
        https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
        https://docs.nvidia.com/deploy/xid-errors/
    """
    if log.complete is False:
        reason = f"{log.lines} lines of {log.source} were read, but those of the machine's start are overwritten"
        yield Unjudged(subject="kernel log", reason=reason)
    elif not log.lines:
        yield Unjudged(subject="kernel log", reason=f"{log.source} is empty")
    else:
        reach = ", back to the boot" if log.complete else ""
        yield Evidence(subject="kernel log", observed=f"{log.lines} lines of {log.source}{reach}")
