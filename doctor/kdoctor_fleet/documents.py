"""The report of a node as it is read: the parts that a fleet needs, with bounded sizes.

What a node sends is data. Texts that are too long or too many make the file unusable. Control characters are escaped
before anything is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from kdoctor.documents import Part
from kdoctor.engine.report import Conclusion, Mark
from kdoctor.facts import Node
from kdoctor.model import Action, Rollback, Severity, Status

MOST_BYTES = 32 * 2**20
"""A report has about 100 kB. A file that is larger than this is not read."""

Id = Annotated[str, StringConstraints(pattern=r"^[a-z]{1,32}\.[a-z0-9-]{1,96}$")]
Text = Annotated[str, StringConstraints(max_length=8_000)]
Name = Annotated[str, StringConstraints(max_length=300)]
Ids = Annotated[tuple[Id, ...], Field(max_length=2_000)]
Texts = Annotated[tuple[Text, ...], Field(max_length=500)]


class SentProblem(Part):
    """As in ``kdoctor.engine.report.Problem``."""

    check: Id
    subjects: Texts
    headline: Text


class SentCause(Part):
    """As in ``kdoctor.engine.report.Cause``."""

    checks: Annotated[tuple[Id, ...], Field(min_length=1, max_length=500)]
    severity: Severity
    problems: Annotated[tuple[SentProblem, ...], Field(max_length=500)]
    fix: Text
    commands: Texts = ()
    look: Texts = ()
    rollback: Rollback
    explains: Ids = ()
    unjudged: Ids = ()


class SentRemedy(Part):
    """What kind of work a fix requires."""

    action: Action


class SentFinding(Part):
    """What a finding says about its fix."""

    remedy: SentRemedy


class SentResult(Part):
    """As in ``kdoctor.engine.report.Result``."""

    id: Id
    title: Text
    status: Status
    severity: Severity
    reason: Text | None = None
    accepted: Text | None = None
    blocked_by: Text | None = None
    findings: Annotated[tuple[SentFinding, ...], Field(max_length=5_000)] = ()


class SentCategory(Part):
    """As in ``kdoctor.engine.report.Category``."""

    family: Name
    mark: Mark
    text: Text


class SentTraining(Part):
    """As in ``kdoctor.engine.report.Training``."""

    scenario: Name
    case: Name
    outcome: Name
    devices: Literal["gpu", "cpu"]
    replicas: int | None = None
    step_s: float | None = None
    measures: Annotated[Mapping[Name, float | None], Field(max_length=500)] = Field(default_factory=dict)
    phase: Name | None = None
    stacks: Annotated[str | None, StringConstraints(max_length=40_000)] = None


class SentChecklist(Part):
    """As in ``kdoctor.engine.report.ChecklistName``."""

    name: Name
    version: int


class SentReport(Part):
    """A report of ``kdoctor check --format json``. Reports of older kdoctors lack the last keys."""

    kdoctor: Name
    verdict: Conclusion
    verdict_reason: Text
    interrupted: bool = False
    checklist: SentChecklist
    started_at: Name = ""
    results: Annotated[tuple[SentResult, ...], Field(max_length=2_000)]
    categories: Annotated[tuple[SentCategory, ...], Field(max_length=100)] = ()
    causes: Annotated[tuple[SentCause, ...], Field(max_length=1_000)] = ()
    trainings: Annotated[tuple[SentTraining, ...], Field(max_length=2_000)] = ()
    node: Node | None = None
    facts: Annotated[Mapping[Name, Annotated[Mapping[Name, Text], Field(max_length=5_000)]], Field(max_length=50)] = (
        Field(default_factory=dict)
    )
