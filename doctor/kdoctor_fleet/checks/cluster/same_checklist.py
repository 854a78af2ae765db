from collections.abc import Callable, Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor.text.lists import counted, grouped
from kdoctor_checks._gpus import READ_ONLY
from kdoctor_fleet.facts import Fleet, FleetNode


@check("cluster.same-checklist", severity=Severity.WARNING)
def same_checklist(fleet: Fleet) -> Iterator[Outcome]:
    """All nodes were checked by the same checklist and the same kdoctor.

    Why: a node passes what its checklist asks. Verdicts by other checklists or releases of kdoctor are not comparable.
    Remedy: check all nodes by the same command.
    Source: https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html
    """
    if len(fleet.nodes) < 2:  # noqa: PLR2004 - two nodes can differ
        yield NotApplicable(reason="only one node reported")
        return
    yield from _compare(fleet, "checklist", lambda node: node.checklist)
    yield from _compare(fleet, "kdoctor", lambda node: node.kdoctor)


def _compare(fleet: Fleet, what: str, value_of: Callable[[FleetNode], str]) -> Iterator[Outcome]:
    by_value = grouped((value_of(node), node.name) for node in fleet.nodes)
    (most, _), *others = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
    if not others:
        yield Evidence(subject="all nodes", observed=f"{what} {most}")
    for value, names in others:
        yield Finding(
            subject=fleet.fold(names),
            observed=f"{what} {value}; {len(by_value[most])} of {counted(len(fleet.nodes), 'node')} have {most}",
            brief=f"another {what} than most nodes",
            expected=f"{what} {most}",
            remedy=Remedy.configure(f"Check {fleet.fold(names)} as the other nodes."),
            rollback=READ_ONLY,
        )
