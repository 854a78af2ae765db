"""Compares two reports of a fleet."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from kdoctor.documents import Document, Part
from kdoctor.text.lists import grouped
from kdoctor.text.sanitize import clean
from kdoctor_fleet.facts import NodeState
from kdoctor_fleet.names import fold
from kdoctor_fleet.report import FleetDocument, NodeNote
from kdoctor_fleet.run_record import read_named

_ORDER = (NodeState.PASSED, NodeState.UNKNOWN, NodeState.SILENT, NodeState.FAILED)
"""Best first."""


class NodeChange(Part):
    """A node whose state changed."""

    name: str
    old: Annotated[NodeState | None, Field(description="None if the older run does not have the node.")]
    new: Annotated[NodeState | None, Field(description="None if the newer run does not have the node.")]
    reason: Annotated[str, Field(description="Of the new state.")]


class CauseChange(Part):
    """A problem that came, went, or is about other nodes."""

    check: str
    headline: str
    came: Annotated[tuple[str, ...], Field(description="The nodes that have it now only.")]
    went: Annotated[tuple[str, ...], Field(description="The nodes that had it before only.")]


class FleetDiff(Document):
    """What changed between two runs over a fleet."""

    schema_: Annotated[Literal["kdoctor/fleet-diff/v1"], Field(alias="schema")] = "kdoctor/fleet-diff/v1"
    old: Annotated[str, Field(description="When the older reports were merged.")]
    new: Annotated[str, Field(description="When the newer reports were merged.")]
    nodes: tuple[NodeChange, ...]
    problems: tuple[CauseChange, ...]

    def to_text(self) -> str:
        """For a terminal."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.old} -> {self.new}"
        if not (self.nodes or self.problems):
            yield "No node changed its state, and the problems are the same."
        for (old, new), names in grouped(((node.old, node.new), node.name) for node in self.nodes).items():
            yield f"{fold(names)}: {old.value if old else 'absent'} -> {new.value if new else 'absent'}"
        for problem in self.problems:
            for word, moved in (("came", problem.came), ("went", problem.went)):
                if moved:
                    yield f"{word}: {fold(moved)}: {clean(problem.headline)} ({problem.check})"


def compare(old: FleetDocument, new: FleetDocument) -> FleetDiff:
    """What changed: nodes first that got worse, then problems in the order of the newer report."""
    return FleetDiff(
        old=old.merged_at, new=new.merged_at, nodes=tuple(_nodes(old, new)), problems=tuple(_problems(old, new))
    )


def _nodes(old: FleetDocument, new: FleetDocument) -> Iterator[NodeChange]:
    before, after = ({node.name: node for node in report.nodes} for report in (old, new))
    changes = [
        NodeChange(
            name=name,
            old=before[name].state if name in before else None,
            new=after[name].state if name in after else None,
            reason=after[name].reason if name in after else "",
        )
        for name in sorted({*before, *after})
    ]
    changed = [change for change in changes if change.old is not change.new]
    yield from sorted(changed, key=lambda change: -_ORDER.index(change.new) if change.new else 1)


def _problems(old: FleetDocument, new: FleetDocument) -> Iterator[CauseChange]:
    before, after = _of_causes(old.nodes), _of_causes(new.nodes)
    for key in dict.fromkeys((*after, *before)):
        had, has = before.get(key, set()), after.get(key, set())
        if had != has:
            check, headline = key
            yield CauseChange(
                check=check, headline=headline, came=tuple(sorted(has - had)), went=tuple(sorted(had - has))
            )


def _of_causes(nodes: Iterable[NodeNote]) -> dict[tuple[str, str], set[str]]:
    """Check and headline to the nodes that have the problem."""
    pairs = (((problem.check, problem.headline), node.name) for node in nodes for problem in node.problems)
    return {problem: set(names) for problem, names in grouped(pairs).items()}


def read_report(path: Path) -> FleetDocument:
    """The JSON report of a fleet.

    Raises:
        UsageError: it cannot be read or is not one.
    """
    hint = "Write one: kdoctor fleet merge reports/ --output json=fleet.json"
    problem = "not the report of a fleet: "
    return read_named(path, FleetDocument, lambda report: (node.name for node in report.nodes), problem, hint)
