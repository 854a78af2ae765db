import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KernelLog
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._kernel_log import summary

_OF_GROUP = re.compile(r"CONSTRAINT_MEMCG|[Mm]emory cgroup out of memory")
_OWNERS = (
    ("a Slurm job", r"oom_memcg=\S*/job_\d+", "sbatch --mem"),
    (
        "a container",
        r"oom_memcg=\S*(?:kubepods|docker|libpod|cri-|lxc)",
        "docker run --memory, resources.limits of a pod",
    ),
)
"""Who has such a control group, and where its limit is set."""
_ALL = Remedy.configure(
    "Use less memory (smaller shuffle buffers, no cache of a whole dataset), or request more.",
    look=("sudo dmesg | grep -i 'killed process'", "free -h"),
)


@check("host.killed-programs", severity=Severity.WARNING)
def killed_programs(log: KernelLog, *, last_hours: int = 24) -> Iterator[Outcome]:
    """The kernel has not killed a program because memory ran out.

    Why: if the memory of the machine or of a control group runs out, the kernel kills the largest program, usually the
    training. The training ends without a message, and the next one that needs as much memory ends the same way. On this
    machine the last day counts; in a recording, all of it.
    Remedy: use less memory (smaller shuffle buffers, no cache of a whole dataset), or request more.
    Sources:
        https://docs.kernel.org/admin-guide/mm/concepts.html
        https://docs.kernel.org/admin-guide/cgroup-v2.html
    """
    since_s = log.until_s - last_hours * 3600 if log.until_s is not None else 0
    killed = [item for item in log.events if item.kind == "program-killed" and (item.boot_s or since_s) >= since_s]
    if not log.lines:
        yield Unjudged(subject="kernel log", reason=f"{log.source} is empty")
    elif not killed:
        last = "" if log.until_s is None else f" of the last {counted(last_hours, 'hour')}"
        yield Evidence(subject="kernel log", observed=f"no killed program{last} in {counted(log.lines, 'line')}")
    else:
        # The kernel also says who asked for the memory.
        killed = [event for event in killed if event.program] or killed
        names = list(dict.fromkeys(event.program or "a program" for event in killed))
        limited = all(_OF_GROUP.search(event.text) for event in killed)
        owner, setting = _owner(log) if limited else ("", "")
        yield Finding(
            subject="kernel log",
            observed=summary(killed),
            brief=f"killed at the memory limit of {owner}: {some(names, 1)}"
            if limited
            else f"the kernel killed {some(names, 2)}: out of memory",
            expected="no killed program",
            remedy=_limit(setting) if limited else _ALL,
        )


def _owner(log: KernelLog) -> tuple[str, str]:
    """Whose limit was reached, and where it is set. Only the line with the path of the control group says it."""
    texts = [event.text for event in log.events if event.kind == "program-killed"]
    known = ((owner, setting) for owner, words, setting in _OWNERS for text in texts if re.search(words, text))
    return next(known, ("a cgroup", "MemoryMax of systemd, sbatch --mem, docker run --memory"))


def _limit(setting: str) -> Remedy:
    return Remedy.configure(
        f"Raise the limit ({setting}), or use less memory. The machine may have more: the limit is the group's.",
        look=("sudo dmesg | grep -i oom-kill:", "cat /sys/fs/cgroup/memory.max"),
    )
