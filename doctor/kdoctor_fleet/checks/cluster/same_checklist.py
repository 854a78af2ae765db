from collections.abc import Iterator, Mapping

from kdoctor.check import check
from kdoctor.model import READ_ONLY, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor.text.lists import counted, grouped
from kdoctor_fleet.facts import Fleet
from kdoctor_fleet.states import Asked


@check("cluster.same-checklist", severity=Severity.WARNING)
def same_checklist(fleet: Fleet) -> Iterator[Outcome]:
    """All nodes were asked the same: checklist, its content, options, and release of kdoctor.

    Why: a node passes what it is asked. One that was asked something else than most nodes does not count as passed; the
    difference is named by the name and the version of its checklist, the digest of what it expects, and the options.
    Remedy: check all nodes by the same command.
    Source: https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html
    """
    if len(fleet.nodes) < 2:  # noqa: PLR2004 - two nodes can differ
        yield NotApplicable(reason="only one node reported")
        return
    yield from _compare(fleet, "checklist", {node.name: node.checklist for node in fleet.nodes})
    yield from _compare(fleet, "kdoctor", {node.name: node.kdoctor for node in fleet.nodes})


def _compare(fleet: Fleet, what: str, values: Mapping[str, str]) -> Iterator[Outcome]:
    by_value = grouped((value, name) for name, value in values.items())
    common, _ = Asked.of(fleet.nodes).checklist
    most, *others = sorted(by_value, key=lambda value: (-len(by_value[value]), value != common, value))
    if not others:
        yield Evidence(subject="all nodes", observed=f"{what} {most}")
    for value in others:
        names = by_value[value]
        yield Finding(
            subject=fleet.fold(names),
            observed=f"{what} {value}; {len(by_value[most])} of {counted(len(fleet.nodes), 'node')} have {most}",
            brief=f"{what} {value}, unlike other nodes",
            expected=f"{what} {most}",
            remedy=Remedy.configure(f"Check {fleet.fold(names)} as the other nodes."),
            rollback=READ_ONLY,
        )
