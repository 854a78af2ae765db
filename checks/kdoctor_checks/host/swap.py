"""Whether the machine swaps."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Host
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import size

_SUBJECT = "swap"


@check("host.swap", severity=Severity.INFO)
def swap(host: Host, *, most_share_of_memory: float = 0.1) -> Iterator[Outcome]:
    """Little of the memory was swapped out.

    Why: memory on a disk is slower a thousandfold. Much of it there says that the machine is, or was, short of
    memory; what was swapped out long ago and is not used does no harm, hence no more than a note.
    Remedy: look for what needed so much memory.
    Sources:
        https://docs.kernel.org/admin-guide/sysctl/vm.html
        https://docs.kernel.org/filesystems/proc.html
    """
    used, total, memory = host.swap_used_bytes, host.swap_total_bytes, host.memory_total_bytes
    if used is None or total is None or memory is None:
        yield Unjudged(subject=_SUBJECT, reason="its size, or how much of it is used, was not read")
    elif used <= most_share_of_memory * memory:
        yield Evidence(subject=_SUBJECT, observed=f"{size(used)} of {size(total)} used")
    else:
        yield Finding(
            subject=_SUBJECT,
            observed=f"{size(used)} of {size(total)} used",
            expected=f"at most {size(int(most_share_of_memory * memory))}",
            remedy=Remedy(
                summary="Look for what needed so much memory, and whether it still swaps (columns si and so).",
                action=Action.CONFIGURE,
                commands=("free -h", "vmstat 1 5"),
            ),
            rollback=Rollback.nothing("looking changes nothing"),
        )
