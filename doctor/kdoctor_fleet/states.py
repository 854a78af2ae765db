"""What a node's own results say about it. Its verdict is computed from them, and never believed."""

from collections.abc import Iterable, Iterator

from kdoctor.engine.report import ALLOW_UNKNOWN, Conclusion
from kdoctor.model import Severity, Status
from kdoctor.text.lists import some
from kdoctor_fleet.facts import FleetNode, NodeResult
from kdoctor_fleet.report import NodeState

_JUDGED = (Status.PASS, Status.FAIL)


def judged_anywhere(nodes: Iterable[FleetNode]) -> frozenset[str]:
    """The checks that were evaluated on a node."""
    return frozenset(line.id for node in nodes for line in node.results if line.status in _JUDGED)


def own_state(node: FleetNode, judged: frozenset[str]) -> tuple[NodeState, str]:
    """The node's state by its own results, and the reason.

    It failed if an error was found. It is unknown if a check of severity error has no evidence, or if it was not asked
    what the others were: a fleet of which nothing is known is not ready.

    Args:
        node: the node.
        judged: the checks that were evaluated on any node.
    """
    required = [line for line in node.results if line.severity is Severity.ERROR]
    failed = [line.id for line in required if line.status is Status.FAIL]
    if failed or node.verdict is Conclusion.FAIL:
        contradicted = failed and node.verdict is not Conclusion.FAIL
        return NodeState.FAILED, f"{some(failed)} failed" if contradicted else node.reason
    for ids, why in _gaps(node, required, judged):
        if ids:
            return NodeState.UNKNOWN, f"{some(ids)} {why}"
    if not any(line.status is Status.PASS for line in required):
        return NodeState.UNKNOWN, "its report has no check that passed"
    if node.verdict is Conclusion.UNKNOWN:
        return NodeState.UNKNOWN, node.reason
    return NodeState.PASSED, node.reason


def _gaps(node: FleetNode, required: Iterable[NodeResult], judged: frozenset[str]) -> Iterator[tuple[list[str], str]]:
    """Checks without evidence, and why that matters."""
    lines = {line.id: line for line in required}
    yield (
        [
            line.id
            for line in lines.values()
            if line.status is Status.UNKNOWN and line.accepted in (None, ALLOW_UNKNOWN)
        ],
        "could not be evaluated",
    )
    yield ([line.id for line in lines.values() if line.left_out and not line.scenario], "left out by an option")
    known = {line.id for line in node.results}
    yield sorted(judged - known), "not in its report, but in those of other nodes"
