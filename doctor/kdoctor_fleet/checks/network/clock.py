from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_fleet.checks.network._hosts import not_several, tasks
from kdoctor_fleet.facts import JobHosts

_SUBJECT = "clock"


@check("network.clock", severity=Severity.WARNING)
def clock(
    hosts: JobHosts | Unavailable, environment: Environment | Unavailable, *, most_offset_s: float = 0.1
) -> Iterator[Outcome]:
    """This machine's clock is synchronized.

    Why: logs of several machines can only be compared with equal clocks, and credentials of storage (Kerberos, signed
    URLs) and newest-checkpoint rules by file time fail with different ones. Each machine is judged by its own time
    service. A warning, because trainings themselves do not use the clock.
    Remedy: start chrony or systemd-timesyncd.
    Sources:
        https://chrony-project.org/doc/4.6/chronyc.html
        https://www.freedesktop.org/software/systemd/man/latest/timedatectl.html
    """
    yield from not_several(hosts, environment)
    if isinstance(hosts, Unavailable) or not tasks(hosts):
        return
    offset = hosts.clock_offset_s
    if hosts.clock_synchronized is None:
        yield Unjudged(subject=_SUBJECT, reason="neither chronyc nor timedatectl reports whether it is synchronized")
    elif not hosts.clock_synchronized:
        yield _finding(f"not synchronized ({hosts.clock_source})", "synchronized", "is not synchronized")
    elif offset is not None and abs(offset) > most_offset_s:
        expected = f"at most {most_offset_s:g} s"
        yield _finding(f"{abs(offset):.3g} s from its time servers", expected, "differs from its time servers")
    else:
        by = "" if offset is None else f", {abs(offset):.2g} s from its time servers"
        yield Evidence(subject=_SUBJECT, observed=f"synchronized ({hosts.clock_source}){by}")


def _finding(observed: str, expected: str, brief: str) -> Finding:
    return Finding(
        subject=_SUBJECT,
        observed=observed,
        brief=brief,
        expected=expected,
        remedy=Remedy.configure(
            "Start the time service of this machine. In a container, of its host.",
            "sudo timedatectl set-ntp true",
            look=("timedatectl", "chronyc tracking"),
        ),
        rollback=Rollback.to("turn the time service off again", "sudo timedatectl set-ntp false"),
    )
