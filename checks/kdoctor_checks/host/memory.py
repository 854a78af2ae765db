from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Host
from kdoctor.model import Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import GIB, judge, size
from kdoctor_checks.host._sizes import short_size

_SUBJECT = "memory"


@check("host.memory", severity=Severity.WARNING)
def memory(host: Host, *, least_gib: float = 2.0, least_share: float = 0.05) -> Iterator[Outcome]:
    """Enough host memory is available for the job.

    Why: TensorFlow, its libraries and the input buffers need gigabytes of host memory. If memory runs out, the kernel
    kills the largest process, which is the training. In a container, the limit of its control group counts.
    Remedy: stop the processes that use the memory, or request more.
    Sources:
        https://docs.kernel.org/admin-guide/cgroup-v2.html
        https://www.tensorflow.org/guide/data_performance
    """
    total, available = host.memory_total_bytes, host.memory_available_bytes
    if total is None or available is None:
        yield Unjudged(subject=_SUBJECT, reason="its size or available amount was not read")
        return
    least = max(least_gib * GIB, least_share * total)
    yield judge(
        _SUBJECT,
        f"{size(available)} of {size(total)} available",
        ok=available >= least,
        value=f"{short_size(total)} memory",
        expected=f"at least {size(int(least))}",
        remedy=Remedy.configure(
            "Stop processes that use memory, or request more from the scheduler or the container runtime.",
            look=("free -h", "ps -eo rss,pid,user,args --sort=-rss | head"),
        ),
        rollback=Rollback.irreversible("not possible (note the command line of a process before stopping it)"),
    )
