from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Host
from kdoctor.model import Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import judge, size

_SUBJECT = "swap"


@check("host.swap", severity=Severity.INFO)
def swap(host: Host, *, most_share_of_memory: float = 0.1) -> Iterator[Outcome]:
    """Little memory is swapped out.

    Why: swap is about a thousand times slower than memory. Much swapped memory shows that the machine is, or was,
    short of memory. Pages that are no longer used do no harm.
    Remedy: find the processes that need the memory.
    Sources:
        https://docs.kernel.org/admin-guide/sysctl/vm.html
        https://docs.kernel.org/filesystems/proc.html
    """
    used, total, memory = host.swap_used_bytes, host.swap_total_bytes, host.memory_total_bytes
    if used is None or total is None or memory is None:
        yield Unjudged(subject=_SUBJECT, reason="its size or used amount was not read")
    else:
        yield judge(
            _SUBJECT,
            f"{size(used)} of {size(total)} used",
            ok=used <= most_share_of_memory * memory,
            expected=f"at most {size(int(most_share_of_memory * memory))}",
            remedy=Remedy.configure(
                "Find the processes that need the memory, and watch whether the machine still swaps (si, so).",
                look=("free -h", "vmstat 1 5"),
            ),
        )
