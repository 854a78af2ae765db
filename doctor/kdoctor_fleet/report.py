"""What the report of a fleet has besides the parts of an ordinary report."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kdoctor.engine.report import Report
from kdoctor.model import Severity
from kdoctor_fleet.exclusion import Engine, Exclusion
from kdoctor_fleet.facts import Fleet
from kdoctor_fleet.scope import Scope


class NodeState(str, Enum):
    """What a job may do with a node."""

    PASSED = "passed"
    """Use it."""
    FAILED = "failed"
    """Its own checks failed, or it differs from the other nodes in what a job needs equal."""
    UNKNOWN = "unknown"
    """Its own checks or the comparison were inconclusive."""
    SILENT = "silent"
    """It was expected and did not report."""


@dataclass(frozen=True, kw_only=True)
class NodeProblem:
    """A problem of one node."""

    check: str
    """Id of the check."""
    headline: str
    severity: Severity
    scope: Scope
    """Whether it is a problem of the node or of the job."""


@dataclass(frozen=True, kw_only=True)
class NodeNote:
    """One node of the fleet."""

    name: str
    state: NodeState
    reason: str
    """One sentence: its own verdict, or why it is not used in spite of that."""
    expected: bool
    """Whether it was expected; true if nothing says which nodes are."""
    source: str = ""
    """The file of its report; empty for a silent node."""
    rank: int | None = None
    """Its rank in the job, if its launcher gave one."""
    problems: tuple[NodeProblem, ...] = ()
    """Worst first."""

    @property
    def broken(self) -> bool:
        """Whether it has a problem of the node itself, so that other jobs should not use it."""
        return any(item.scope == "node" and item.severity is Severity.ERROR for item in self.problems)


@dataclass(frozen=True, kw_only=True)
class FleetReport:
    """The report of a fleet: an ordinary report whose subjects are nodes, and the nodes."""

    report: Report
    """Its causes, results, plan and verdict are about all nodes."""
    nodes: tuple[NodeNote, ...]
    """In order of name."""
    needed: int
    """How many nodes must pass."""
    fleet: Fleet
    exclusions: tuple[Exclusion, ...] = ()
    engine: Engine = "hosts"
    """The engine that the nodes ran under."""

    def of(self, *states: NodeState) -> tuple[str, ...]:
        """Names of the nodes in these states that a job may use at all."""
        return tuple(node.name for node in self.nodes if node.state in states and node.expected)

    @property
    def passing(self) -> tuple[str, ...]:
        """The nodes to use."""
        return self.of(NodeState.PASSED)

    @property
    def failing(self) -> tuple[str, ...]:
        """The nodes to leave out."""
        return self.of(NodeState.FAILED, NodeState.UNKNOWN, NodeState.SILENT)
