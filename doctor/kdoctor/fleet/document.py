"""The report of a fleet as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kdoctor.documents import Document, Part
from kdoctor.engine.causes import describe_problem
from kdoctor.engine.report import Category, ChecklistName, Conclusion, FixStep
from kdoctor.fleet.exclusion import Engine
from kdoctor.fleet.merge import nodes_of
from kdoctor.fleet.report import FleetReport, NodeState
from kdoctor.fleet.scope import Scope
from kdoctor.model import Severity, Status
from kdoctor.version import __version__

SCHEMA: Literal["kdoctor/fleet/v1"] = "kdoctor/fleet/v1"


class FleetNodeProblem(Part):
    """A problem of one node."""

    check: Annotated[str, Field(description="Id of the check.")]
    headline: str
    severity: Severity
    scope: Annotated[Scope, Field(description="Whether it is a problem of the node or of the job.")]


class FleetNodeEntry(Part):
    """One node."""

    name: str
    state: NodeState
    reason: Annotated[str, Field(description="Its own verdict, or why it is not used in spite of that.")]
    expected: Annotated[bool, Field(description="Whether it was expected; true if nothing says which nodes are.")]
    broken: Annotated[bool, Field(description="Whether it has a problem of the node, so that no job should use it.")]
    source: Annotated[str, Field(description="The file of its report; empty for a silent node.")]
    rank: int | None
    problems: tuple[FleetNodeProblem, ...]


class FleetCause(Part):
    """One cause of failures over all nodes."""

    checks: tuple[str, ...]
    severity: Severity
    scope: Annotated[Scope, Field(description="Whether it is a problem of the nodes or of the job.")]
    problems: Annotated[tuple[str, ...], Field(description="What is wrong, with the nodes in short.")]
    nodes: Annotated[tuple[str, ...], Field(description="Every node that it is about.")]
    fix: str
    commands: Annotated[tuple[str, ...], Field(description="As computed for one of the nodes. Read before pasting.")]
    look: tuple[str, ...]
    explains: tuple[str, ...]


class FleetCheck(Part):
    """The result of one check over all nodes."""

    id: str
    status: Status
    severity: Severity
    reason: str | None


class UnreadFile(Part):
    """A file that is not a usable report."""

    source: str
    reason: str


class ExclusionEntry(Part):
    """How to keep nodes out of a job, in the words of one engine. kdoctor runs nothing of it."""

    engine: Engine
    leave_out: Annotated[tuple[str, ...], Field(description="Starts the job without the nodes that did not pass.")]
    drain: Annotated[tuple[str, ...], Field(description="Keeps other jobs off the nodes that have a problem.")]


class FleetDocument(Document):
    """The report of ``kdoctor fleet merge``."""

    schema_: Annotated[Literal["kdoctor/fleet/v1"], Field(alias="schema")] = SCHEMA
    kdoctor: Annotated[str, Field(description="Version of kdoctor.")]
    verdict: Conclusion
    verdict_reason: str
    exit_code: int
    checklist: ChecklistName
    merged_at: Annotated[str, Field(description="UTC, ISO 8601.")]
    duration_s: float
    needed: Annotated[int, Field(description="How many nodes must pass.")]
    passing: Annotated[tuple[str, ...], Field(description="The nodes to use.")]
    failing: Annotated[tuple[str, ...], Field(description="The nodes to leave out.")]
    nodes: tuple[FleetNodeEntry, ...]
    categories: tuple[Category, ...]
    causes: tuple[FleetCause, ...]
    plan: tuple[FixStep, ...]
    checks: tuple[FleetCheck, ...]
    unread: tuple[UnreadFile, ...]
    exclusions: tuple[ExclusionEntry, ...]


def make_document(shown: FleetReport) -> FleetDocument:
    """The report as its document."""
    report = shown.report
    known = {node.name for node in shown.nodes}
    return FleetDocument(
        kdoctor=__version__,
        verdict=report.verdict.conclusion,
        verdict_reason=report.verdict.reason,
        exit_code=report.verdict.exit_code,
        checklist=report.checklist,
        merged_at=report.started_at,
        duration_s=round(report.duration_s, 3),
        needed=shown.needed,
        passing=shown.passing,
        failing=shown.failing,
        nodes=tuple(
            FleetNodeEntry(
                name=node.name,
                state=node.state,
                reason=node.reason,
                expected=node.expected,
                broken=node.broken,
                source=node.source,
                rank=node.rank,
                problems=tuple(FleetNodeProblem(**vars(item)) for item in node.problems),
            )
            for node in shown.nodes
        ),
        categories=report.categories,
        causes=tuple(
            FleetCause(
                checks=cause.checks,
                severity=cause.severity,
                scope=cause.scope or "job",
                problems=tuple(map(describe_problem, cause.problems)),
                nodes=tuple(
                    dict.fromkeys(
                        name
                        for problem in cause.problems
                        for subject in problem.subjects
                        for name in nodes_of(subject, known)
                    )
                ),
                fix=cause.fix,
                commands=cause.commands,
                look=cause.look,
                explains=cause.explains,
            )
            for cause in report.causes
        ),
        plan=report.plan,
        checks=tuple(
            FleetCheck(id=item.id, status=item.status, severity=item.severity, reason=item.reason)
            for item in report.results
        ),
        unread=tuple(UnreadFile(source=item.source, reason=item.reason) for item in shown.fleet.unread),
        exclusions=tuple(ExclusionEntry(**vars(item)) for item in shown.exclusions),
    )
