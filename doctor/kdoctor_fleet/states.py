"""What a node's own results say about it. Its verdict is computed from them, and never believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kdoctor.engine.report import ALLOW_UNKNOWN, Conclusion
from kdoctor.model import Severity, Status
from kdoctor.text.lists import some
from kdoctor_fleet.facts import FleetNode, NodeResult, NodeState

_JUDGED = (Status.PASS, Status.FAIL)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the nodes of a fleet were asked."""

    checklist: str
    """What most nodes were; of two that are as common, the one by which more was evaluated. Empty without nodes."""
    options: str
    """The options among that."""
    applied: frozenset[str]
    """The checks that were not skipped on every node."""
    errors: frozenset[str]
    """The checks whose failure is an error on any node: no node decides by itself what matters less."""

    @classmethod
    def of(cls, nodes: Sequence[FleetNode]) -> Asked:
        """What these nodes were asked."""
        lines = [(node.checklist, line) for node in nodes for line in node.results]
        common = Counter(node.checklist for node in nodes)
        evaluated = Counter(checklist for checklist, line in lines if line.status in _JUDGED)
        checklist = max(sorted(common), key=lambda name: (common[name], evaluated[name]), default="")
        return cls(
            checklist=checklist,
            options=next((node.options for node in nodes if node.checklist == checklist), ""),
            applied=frozenset(line.id for _, line in lines if line.status is not Status.SKIP),
            errors=frozenset(line.id for _, line in lines if line.severity is Severity.ERROR),
        )


def own_state(node: FleetNode, asked: Asked) -> tuple[NodeState, str]:
    """The node's state by its own results, and the reason.

    It failed if an error was found. It is unknown if a check of severity error has no evidence, or if it was not asked
    what the others were: a fleet of which nothing is known is not ready.

    Args:
        node: the node.
        asked: what the nodes were asked.
    """
    required = [line for line in node.results if line.id in asked.errors]
    failed = [line.id for line in required if line.status is Status.FAIL]
    if failed or node.verdict is Conclusion.FAIL:
        contradicted = failed and node.verdict is not Conclusion.FAIL
        return NodeState.FAILED, f"{some(failed)} failed" if contradicted else node.reason
    for ids, why in _gaps(node, required, asked.applied):
        if ids:
            return NodeState.UNKNOWN, f"{some(ids)} {why}"
    if node.checklist != asked.checklist:
        return NodeState.UNKNOWN, f"it was asked something else than other nodes: {node.checklist}"
    if not any(line.status is Status.PASS for line in required):
        return NodeState.UNKNOWN, "its report has no check that passed"
    if node.verdict is Conclusion.UNKNOWN:
        return NodeState.UNKNOWN, node.reason
    return NodeState.PASSED, node.reason


def _gaps(node: FleetNode, required: Iterable[NodeResult], applied: frozenset[str]) -> Iterator[tuple[list[str], str]]:
    """Checks without evidence, and why that matters."""
    lines = {line.id: line for line in required}
    yield (
        [
            line.id
            for line in lines.values()
            if line.blocked_by or (line.status is Status.UNKNOWN and line.accepted in (None, ALLOW_UNKNOWN))
        ],
        "could not be evaluated",
    )
    untrained = "--no-smoke" in node.options.split()  # which the verdict of the fleet names
    yield [line.id for line in lines.values() if line.left_out and not (line.scenario and untrained)], "left out"
    known = {line.id for line in node.results}
    yield sorted(applied - known), "not in its report, but in those of other nodes"
