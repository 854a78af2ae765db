"""Whether memory is left for the job."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Host
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import GIB, size

_SUBJECT = "memory"


@check("host.memory", severity=Severity.WARNING)
def memory(host: Host, *, least_gib: float = 2.0, least_share: float = 0.05) -> Iterator[Outcome]:
    """Memory is left for the job.

    Why: TensorFlow, its libraries and the input's buffers take gigabytes of the host's memory. Where they are missing
    the kernel ends the largest process, which is the training. In a container its control group's limit counts.
    Remedy: end what holds the memory, or ask for more.
    Sources:
        https://docs.kernel.org/admin-guide/cgroup-v2.html
        https://www.tensorflow.org/guide/data_performance
    """
    total, available = host.memory_total_bytes, host.memory_available_bytes
    if total is None or available is None:
        yield Unjudged(subject=_SUBJECT, reason="its size, or what is available, was not read")
        return
    least = max(least_gib * GIB, least_share * total)
    words = f"{size(available)} of {size(total)} available"
    if available >= least:
        yield Evidence(subject=_SUBJECT, observed=words)
        return
    yield Finding(
        subject=_SUBJECT,
        observed=words,
        expected=f"at least {size(int(least))}",
        remedy=Remedy(
            summary="End what holds the memory, or ask the scheduler or the container runtime for more.",
            action=Action.CONFIGURE,
            commands=("free -h", "ps -eo rss,pid,user,args --sort=-rss | head"),
        ),
        rollback=Rollback.irreversible("a process that was ended does not come back; note its command line first"),
    )
