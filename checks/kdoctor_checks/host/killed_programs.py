from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KernelLog
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._kernel_log import summary


@check("host.killed-programs", severity=Severity.INFO)
def killed_programs(log: KernelLog) -> Iterator[Outcome]:
    """The kernel has not killed a program because memory ran out.

    Why: if the memory of the machine or of a control group runs out, the kernel kills the largest program, usually the
    training. The training ends without a message, and the next one that needs as much memory ends the same way.
    Remedy: use less memory (smaller shuffle buffers, no cache of a whole dataset), or request more.
    Sources:
        https://docs.kernel.org/admin-guide/mm/concepts.html
        https://docs.kernel.org/admin-guide/cgroup-v2.html
    """
    killed = [event for event in log.events if event.kind == "program-killed"]
    if not log.lines:
        yield Unjudged(subject="kernel log", reason=f"{log.source} is empty")
    elif not killed:
        yield Evidence(subject="kernel log", observed=f"no killed program in {counted(log.lines, 'line')}")
    else:
        names = list(dict.fromkeys(event.program or "a program" for event in killed))
        yield Finding(
            subject="kernel log",
            observed=summary(killed),
            brief=f"the kernel killed {some(names, 2)}: out of memory",
            noted=True,
            expected="no killed program",
            remedy=Remedy.configure(
                "Use less memory (smaller shuffle buffers, no cache of a whole dataset), or request more.",
                look=("sudo dmesg | grep -i 'killed process'", "free -h"),
            ),
        )
