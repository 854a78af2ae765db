"""The report of a fleet: an ordinary report whose subjects are nodes, and the nodes.

Its dataclasses are the parts of its JSON document, too.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from kdoctor.documents import Document, Part
from kdoctor.engine.causes import describe_problem
from kdoctor.engine.report import Category, Cause, ChecklistName, Conclusion, FixStep, Problem, Report
from kdoctor.model import Severity, Status
from kdoctor.records import record
from kdoctor.version import __version__
from kdoctor_fleet.exclusion import Engine, Exclusion
from kdoctor_fleet.facts import NodeState, UnreadReport

Scope = Literal["node", "job"]

_OF_NODES = frozenset({"driver", "gpu", "topology", "network", "host"})
"""Families about the hardware and the system of a node. The others are about what the job brings with it."""
_CLUSTER_OF_NODES = frozenset({
    "cluster.reports", "cluster.driver", "cluster.system", "cluster.gpus", "cluster.topology", "cluster.network",
    "cluster.clock", "cluster.training-speed", "cluster.pairs",
})  # fmt: skip
_OF_NAMES = frozenset({
    "network.hosts-resolve", "network.hosts-reverse", "network.hosts-reachable", "network.port-free",
    "network.nccl-interfaces",
})  # fmt: skip
"""Checks of hosts, ports and interfaces that the job names, in TF_CONFIG and variables of NCCL."""


def scope_of(check: str, *, passed: int, failed: int, alike: bool = True) -> Scope:
    """Whose problem a failed check is.

    A training that fails on few nodes while most nodes pass the same training is the node's problem, because the code
    is the same. If it fails on most nodes, it is the job's. The same is true of the hosts that a job names.

    Args:
        check: its id.
        passed: number of nodes on which it passed.
        failed: number of nodes on which it failed.
        alike: whether all nodes got the same cluster in TF_CONFIG. If not, a host that is not found may be a wrong one.
    """
    if check in _OF_NAMES and not alike:
        return "job"
    family = check.partition(".")[0]
    if family == "smoke" or check in _OF_NAMES:
        return "node" if passed > failed else "job"
    return "node" if family in _OF_NODES or check in _CLUSTER_OF_NODES else "job"


@record
class NodeProblem:
    """A problem of one node."""

    check: str
    """Id of the check."""
    headline: str
    severity: Severity
    scope: Scope
    """Whether it is a problem of the node or of the job."""


@record
class NodeNote:
    """One node."""

    name: str
    state: NodeState
    reason: str
    """Its own verdict, or why it is not used in spite of that."""
    expected: bool
    """Whether it was expected; true if nothing says which nodes are."""
    broken: bool = False
    """Whether it has a problem of the node, so that no job should use it."""
    source: str = ""
    """The file of its report; empty for a silent node."""
    rank: int | None = None
    """Its rank in the job, if its launcher gave one."""
    problems: tuple[NodeProblem, ...] = ()
    """Worst first."""


@record
class FleetCause(Cause):
    """One cause of failures over all nodes."""

    scope: Scope
    nodes: tuple[str, ...]


@record
class FleetReport(Report):
    """The report of a fleet, whose causes, results, plan and verdict are about all nodes."""

    causes: tuple[FleetCause, ...] = ()
    nodes: tuple[NodeNote, ...]
    """In order of name."""
    needed: int
    """How many nodes must pass."""
    unread: tuple[UnreadReport, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    engine: Engine = "hosts"
    """The engine that the nodes ran under."""

    @property
    def passing(self) -> tuple[str, ...]:
        """The nodes to use."""
        return tuple(node.name for node in self.nodes if node.expected and node.state is NodeState.PASSED)

    @property
    def failing(self) -> tuple[str, ...]:
        """The nodes to leave out."""
        return tuple(node.name for node in self.nodes if node.expected and node.state is not NodeState.PASSED)


class _Shown(Part):
    """Some fields of what a report has."""

    model_config = ConfigDict(from_attributes=True, use_attribute_docstrings=True)


def _described(problem: object) -> object:
    return describe_problem(problem) if isinstance(problem, Problem) else problem


class FleetCauseEntry(_Shown):
    """One cause of failures over all nodes."""

    checks: tuple[str, ...]
    severity: Severity
    scope: Scope
    """Whether it is a problem of the nodes or of the job."""
    problems: tuple[Annotated[str, BeforeValidator(_described)], ...]
    """What is wrong, with the nodes in short."""
    nodes: tuple[str, ...]
    """Every node that it is about."""
    fix: str
    commands: tuple[str, ...]
    """Of what kdoctor found by comparing the nodes. The commands of a node are in its report only."""
    look: tuple[str, ...]
    explains: tuple[str, ...]


class FleetCheck(_Shown):
    """The result of one check over all nodes."""

    id: str
    status: Status
    severity: Severity
    reason: str | None


class FleetDocument(Document):
    """The report of ``kdoctor fleet merge``."""

    model_config = ConfigDict(
        revalidate_instances="always", use_attribute_docstrings=True, json_schema_serialization_defaults_required=True
    )

    schema_: Annotated[Literal["kdoctor/fleet/v1"], Field(alias="schema")] = "kdoctor/fleet/v1"
    kdoctor: str
    """Version of kdoctor."""
    verdict: Conclusion
    verdict_reason: str
    exit_code: int
    checklist: ChecklistName
    merged_at: str
    """UTC, ISO 8601."""
    duration_s: float
    needed: int
    """How many nodes must pass."""
    passing: tuple[str, ...]
    """The nodes to use."""
    failing: tuple[str, ...]
    """The nodes to leave out."""
    nodes: tuple[NodeNote, ...]
    categories: tuple[Category, ...]
    causes: tuple[FleetCauseEntry, ...]
    plan: tuple[FixStep, ...]
    checks: tuple[FleetCheck, ...]
    unread: tuple[UnreadReport, ...]
    exclusions: tuple[Exclusion, ...]


def make_document(report: FleetReport) -> FleetDocument:
    """The report as its document."""
    head = {
        "kdoctor": __version__,
        "verdict": report.verdict.conclusion,
        "verdict_reason": report.verdict.reason,
        "exit_code": report.verdict.exit_code,
    }
    return FleetDocument.model_validate(
        {
            **vars(report),
            **head,
            "merged_at": report.started_at,
            "duration_s": round(report.duration_s, 3),
            "passing": report.passing,
            "failing": report.failing,
            "checks": report.results,
        }
    )
