"""The history of a fleet: its JSON reports over time."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from kdoctor.documents import Document, Part
from kdoctor.errors import UsageError
from kdoctor.inputs import is_folder
from kdoctor.text.lists import counted, grouped
from kdoctor.text.sanitize import clean
from kdoctor_fleet.diff import read_report
from kdoctor_fleet.facts import NodeState
from kdoctor_fleet.names import fold
from kdoctor_fleet.report import FleetDocument

_FLAKY = 3
"""Changes of its state from which on a node is called flaky."""
_LETTERS = {NodeState.PASSED: ".", NodeState.FAILED: "F", NodeState.UNKNOWN: "?", NodeState.SILENT: "-"}
_ABSENT = " "


class FleetRunEntry(Part):
    """One run."""

    merged_at: str
    source: Annotated[str, Field(description="The file.")]
    verdict: str
    states: Annotated[dict[NodeState, int], Field(description="Number of nodes in each state.")]


class NodeHistory(Part):
    """One node that did not pass in every run."""

    name: str
    states: Annotated[tuple[NodeState | None, ...], Field(description="In each run; null if the run lacks the node.")]
    since: Annotated[str, Field(description="When its present state began.")]
    changes: Annotated[int, Field(description="How often its state changed.")]
    reason: Annotated[str, Field(description="Of its present state.")]


class FleetHistory(Document):
    """A fleet over time."""

    schema_: Annotated[Literal["kdoctor/fleet-history/v1"], Field(alias="schema")] = "kdoctor/fleet-history/v1"
    runs: Annotated[tuple[FleetRunEntry, ...], Field(description="The oldest first.")]
    nodes: tuple[NodeHistory, ...]

    def to_text(self) -> str:
        """For a terminal."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for run in self.runs:
            numbers = ", ".join(f"{number} {state.value}" for state, number in run.states.items())
            yield f"{run.merged_at}  {run.verdict}: {numbers}"
        if not self.nodes:
            yield "Every node passed in every run."
            return
        yield ""
        yield f"{counted(len(self.runs), 'run')}, the oldest first: . passed, F failed, ? unknown, - silent"
        for (shown, text), names in grouped((_shown(node), node.name) for node in self.nodes).items():
            yield f"{shown}  {fold(names)}  {text}"


def _shown(node: NodeHistory) -> tuple[str, str]:
    shown = "".join(_LETTERS[state] if state else _ABSENT for state in node.states)
    flaky = f"flaky, {counted(node.changes, 'change')}; " if node.changes >= _FLAKY else ""
    return shown, f"{flaky}since {node.since}: {clean(node.reason)}"


def read_history(places: Iterable[Path]) -> FleetHistory:
    """The history in these files, and in the ``.json`` files of folders.

    Raises:
        UsageError: a file is not the report of a fleet, or there is none.
    """
    files = [file for place in places for file in (sorted(place.glob("*.json")) if is_folder(place) else [place])]
    if not files:
        hint = "Write one: kdoctor fleet merge reports/ --output json=history/$(date +%F).json"
        raise UsageError("no reports of a fleet", hint=hint)
    return history_of([(str(file), read_report(file)) for file in files])


def history_of(reports: Sequence[tuple[str, FleetDocument]]) -> FleetHistory:
    """The history that these reports show, each with its file."""
    ordered = sorted(reports, key=lambda item: item[1].merged_at)
    runs = tuple(
        FleetRunEntry(
            merged_at=report.merged_at,
            source=clean(source),
            verdict=report.verdict.value,
            states=dict(sorted(Counter(node.state for node in report.nodes).items())),
        )
        for source, report in ordered
    )
    return FleetHistory(runs=runs, nodes=tuple(_nodes([report for _, report in ordered])))


def _nodes(reports: Sequence[FleetDocument]) -> Iterator[NodeHistory]:
    """Nodes that did not pass in every run that has them, those that do not pass now first."""
    by_run = [{node.name: node for node in report.nodes} for report in reports]
    found = []
    for name in sorted({name for run in by_run for name in run}):
        states = tuple(run[name].state if name in run else None for run in by_run)
        known = [(index, state) for index, state in enumerate(states) if state]
        if all(state is NodeState.PASSED for _, state in known):
            continue
        last, now = known[-1]
        *_, (begun, _) = itertools.takewhile(lambda item: item[1] is now, reversed(known))  # noqa: B023 - used at once
        changes = sum(one is not other for (_, one), (_, other) in itertools.pairwise(known))
        reason = by_run[last][name].reason
        found.append(
            NodeHistory(name=name, states=states, since=reports[begun].merged_at, changes=changes, reason=reason)
        )
    yield from sorted(found, key=lambda node: node.states[-1] is NodeState.PASSED)
