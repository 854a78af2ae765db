"""What a node's own results say about it. Its verdict is computed from them, and never believed."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from kdoctor.engine.report import ALLOW_UNKNOWN, Conclusion
from kdoctor.model import Severity, Status
from kdoctor.records import record
from kdoctor.text.instants import parse_instant
from kdoctor.text.lists import counted, some
from kdoctor.version import __version__
from kdoctor_fleet.facts import FleetNode, NodeResult, NodeState

_JUDGED = (Status.PASS, Status.FAIL)
_OF_ONE = ("clock", "network")
"""Sections in which equal nodes may differ."""
_OLDEST = dt.timedelta(days=1)
"""How much older than the newest report another one may be. A node that died leaves its last report where it was."""


@record
class Measure:
    """What a checklist asks, as the kdoctor that brings the reports together knows it."""

    expectations: str
    """Its digest."""
    errors: frozenset[str]
    """The checks whose failure is an error."""
    checks: frozenset[str]
    accepted: Mapping[str, str | None]
    """Checks that may be unknown, with the reason."""


@record
class Asked:
    """What the nodes of a fleet were asked."""

    checklist: tuple[str, str]
    """What most nodes were, and its digest; of two that are as common, the one by which more was evaluated."""
    options: str
    """The options among that."""
    applied: frozenset[str]
    """The checks that were not skipped on every node."""
    errors: frozenset[str]
    """The checks whose failure is an error on any node: no node decides by itself what matters less."""
    passed: Mapping[object, frozenset[str]]
    """The checks that passed on any of several equal nodes, by what those nodes are."""
    measures: Mapping[str, Measure]
    """The known checklists by name."""
    newest: dt.datetime | None
    """When the newest report began that is not from the future."""

    @classmethod
    def of(
        cls, nodes: Sequence[FleetNode], measures: Mapping[str, Measure] = MappingProxyType({}), merged_at: str = ""
    ) -> Asked:
        """What these nodes were asked, as of when their reports are brought together."""
        now = parse_instant(merged_at)
        times = (parse_instant(node.started_at) for node in nodes)
        lines = [(_asked(node), line) for node in nodes for line in node.results]
        common = Counter(map(_asked, nodes))
        evaluated = Counter(asked for asked, line in lines if line.status in _JUDGED)
        most = max(sorted(common), key=lambda asked: (common[asked], evaluated[asked]), default=("", ""))
        passed: dict[object, set[str]] = {}
        for node in nodes:
            ids = {line.id for line in node.results if line.status is Status.PASS}
            passed.setdefault(_kind(node), set()).update(ids)
        return cls(
            checklist=most,
            options=next((node.options for node in nodes if _asked(node) == most), ""),
            applied=frozenset(line.id for _, line in lines if line.status is not Status.SKIP),
            errors=frozenset(line.id for _, line in lines if line.severity is Severity.ERROR),
            passed={kind: frozenset(ids) for kind, ids in passed.items()},
            measures=measures,
            newest=max((time for time in times if time and (now is None or time <= now)), default=None),
        )

    def day_before(self, merged_at: str) -> str:
        """The day of the newest report, if that is more than a day before this time; else empty."""
        now = parse_instant(merged_at)
        return str(self.newest.date()) if now and self.newest and now - self.newest > _OLDEST else ""

    def measure(self, node: FleetNode) -> Measure | None:
        """The node's checklist as this kdoctor knows it; None if another release asked it."""
        return self.measures.get(node.name_of_checklist) if node.kdoctor == __version__ else None


def _asked(node: FleetNode) -> tuple[str, str]:
    return node.checklist, node.expectations


def _kind(node: FleetNode) -> object:
    """What equal nodes have in common; the node itself if it reported no facts."""
    sections = node.sections.items()
    return frozenset((name, *section.items()) for name, section in sections if name not in _OF_ONE) or node.name


def own_state(node: FleetNode, asked: Asked) -> tuple[NodeState, str]:
    """The node's state by its own results, and the reason.

    It failed if an error was found. It is unknown if a check of severity error has no evidence, or if it was not asked
    what the others were: a fleet of which nothing is known is not ready.

    Args:
        node: the node.
        asked: what the nodes were asked.
    """
    measure = asked.measure(node)
    errors = asked.errors | (measure.errors if measure else frozenset())
    required = [line for line in node.results if line.id in errors]
    failed = [line.id for line in required if line.status is Status.FAIL]
    if failed or node.verdict is Conclusion.FAIL:
        contradicted = failed and node.verdict is not Conclusion.FAIL
        return NodeState.FAILED, f"{some(failed)} failed" if contradicted else node.reason
    gap = next(_gaps(node, required, asked, measure), "")
    if gap:
        return NodeState.UNKNOWN, gap
    if node.verdict is Conclusion.UNKNOWN:
        return NodeState.UNKNOWN, node.reason
    return NodeState.PASSED, node.reason


def _gaps(node: FleetNode, required: Sequence[NodeResult], asked: Asked, measure: Measure | None) -> Iterator[str]:
    """Why the node's results do not show that it is well."""
    yield from (f"{some(ids)} {why}" for ids, why in _unproven(node, required, asked, measure) if ids)
    if _asked(node) != asked.checklist:
        yield f"it was asked something else than other nodes: {node.checklist}"
    if measure and measure.expectations != node.expectations and "--gpus" not in node.options.split():
        yield f"its checklist {node.checklist} is not the one of this kdoctor"
    if not any(line.status is Status.PASS for line in required):
        yield "its report has no check that passed"
    began = parse_instant(node.started_at)
    if began and asked.newest and asked.newest - began > _OLDEST:
        yield f"its report is {counted((asked.newest - began).days, 'day')} older than the newest"


def _unproven(
    node: FleetNode, required: Sequence[NodeResult], asked: Asked, measure: Measure | None
) -> Iterator[tuple[list[str], str]]:
    """Checks without evidence, and why that matters."""

    def is_accepted(line: NodeResult) -> bool:
        known = line.accepted if measure is None else measure.accepted.get(line.id)
        return line.accepted not in (None, ALLOW_UNKNOWN) and known == line.accepted

    unknown = (line for line in required if line.status is Status.UNKNOWN and not is_accepted(line))
    yield [line.id for line in (*unknown, *(line for line in required if line.blocked_by))], "could not be evaluated"
    untrained = "--no-smoke" in node.options.split()  # which the verdict of the fleet names
    left_out = [line.id for line in required if line.left_out and not (line.scenario and untrained)]
    yield left_out, f"left out by {node.options}" if node.options else "left out"
    elsewhere = asked.passed[_kind(node)]
    yield [line.id for line in required if _is_odd(line, elsewhere)], "skipped, but passed on an equal node"
    known = {line.id for line in node.results}
    yield sorted(asked.applied - known), "not in its report, but in those of other nodes"
    yield sorted(measure.checks - known if measure else ()), f"not in its report, but in the checklist {node.checklist}"


def _is_odd(line: NodeResult, elsewhere: frozenset[str]) -> bool:
    return line.status is Status.SKIP and not line.left_out and line.id in elsewhere
