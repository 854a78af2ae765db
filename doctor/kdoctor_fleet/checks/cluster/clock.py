from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.instants import parse_instant
from kdoctor_fleet.facts import Fleet, FleetNode

_FIX = Remedy.configure(
    "Start chrony or systemd-timesyncd on these nodes, and let it set the clock:",
    "sudo systemctl enable --now chrony",
    "sudo chronyc makestep",
    look=("chronyc tracking", "timedatectl status"),
)
_BACK = Rollback.to("the service as before", "sudo systemctl disable --now chrony")


@check("cluster.clock", severity=Severity.WARNING)
def clock(fleet: Fleet, *, most_seconds: float = 1.0, most_ahead_seconds: float = 60.0) -> Iterator[Outcome]:
    """The clocks of all nodes agree.

    Why: tickets of Kerberos and tokens of object stores are refused where the clock is wrong, and logs of several nodes
    cannot be put in order. A report from the future proves a wrong clock, and so does one from before
    ``kdoctor fleet run`` asked for it, or from before its pod was created. Otherwise, a clock that is behind is known
    from the node's own time service.
    Remedy: let chrony or systemd-timesyncd set the clock of these nodes.
    Source: https://slurm.schedmd.com/quickstart_admin.html
    """
    found: dict[str, list[str]] = {}
    good: list[str] = []
    unread: list[str] = []
    for node in fleet.nodes:
        if problem := _problem(node, fleet.merged_at, most_seconds, most_ahead_seconds):
            found.setdefault(problem, []).append(node.name)
        else:
            (good if node.sections.get("clock") else unread).append(node.name)
    for problem, names in found.items():
        yield Finding(
            subject=fleet.fold(names),
            observed=problem,
            brief=problem.partition(":")[0],
            expected=f"a clock within {most_seconds:g} s of its time servers",
            remedy=_FIX,
            rollback=_BACK,
        )
    if good:
        yield Evidence(subject=fleet.fold(good), observed=f"synchronized within {most_seconds:g} s")
    if unread and (good or found):
        yield Unjudged(subject=fleet.fold(unread), reason="its report has no facts about the clock")
    elif unread:
        observed = "no report is from the future; no node reports its time service"
        yield Evidence(subject=fleet.fold(unread), observed=observed)


def _problem(node: FleetNode, merged_at: str, most_seconds: float, most_ahead_seconds: float) -> str:
    """What is wrong with the clock; empty if nothing is known to be."""
    section = node.sections.get("clock", {})
    ahead = _seconds_after(node.started_at, merged_at)
    if ahead is not None and ahead > most_ahead_seconds:
        return f"its clock is ahead: the report starts {ahead:.0f} s after it was read"
    behind = _seconds_after(node.asked_at, node.started_at)
    if behind is not None and behind > most_ahead_seconds:
        return f"its clock is behind: the report starts {behind:.0f} s before it was asked for"
    try:
        offset = abs(float(section["offset-seconds"]))
    except (KeyError, ValueError):
        offset = 0.0
    if not offset <= most_seconds:  # also if it is not a number
        return f"its clock is off: by {offset:.1f} s"
    return "its clock is not synchronized" if section.get("synchronized") == "no" else ""


def _seconds_after(last_at: str, first_at: str) -> float | None:
    last, first = parse_instant(last_at), parse_instant(first_at)
    return (last - first).total_seconds() if last and first else None
