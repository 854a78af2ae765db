"""The JSON report, for programs: a document of its own, versioned, and no dump of the model."""

from __future__ import annotations

import json
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kdoctor import __version__
from kdoctor.engine.report import Conclusion, Decision, Drift, GpuWork, JudgedFinding, Report, Result, Training
from kdoctor.model import Action, Evidence, Remedy, Rollback, Severity, Status

SCHEMA = "kdoctor/report/v1"
"""Keys are added within a version; their meaning changes only with it."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class RemedyPart(_Part):
    """What to do about a finding."""

    summary: str
    commands: list[str]
    action: Action


class RollbackPart(_Part):
    """How to return to the last known good state."""

    kind: Literal["commands", "irreversible", "nothing"]
    why: str
    commands: list[str]


class WaiverPart(_Part):
    """The agreement that covers a finding."""

    reason: str
    owner: str
    expires: date
    expired: Annotated[bool, Field(description="Whether the finding counts again.")]


class FindingPart(_Part):
    """One subject that is not as it should be."""

    subject: str
    observed: str
    expected: str
    remedy: RemedyPart
    rollback: RollbackPart
    waiver: WaiverPart | None


class EvidencePart(_Part):
    """One subject that was judged good, and what was read of it."""

    subject: str
    observed: str


class UnjudgedPart(_Part):
    """One subject whose evidence could not be had."""

    subject: str
    reason: str


class ResultPart(_Part):
    """What became of one check."""

    id: str
    family: str
    title: str
    status: Status
    severity: Severity
    reason: Annotated[str | None, Field(description="Why it was skipped or is unknown.")]
    findings: list[FindingPart]
    evidence: list[EvidencePart]
    unjudged: list[UnjudgedPart]
    why: str
    blocked_by: Annotated[str | None, Field(description="The prerequisite that failed, where that is the reason.")]
    accepted: Annotated[str | None, Field(description="Why an unknown is accepted, where it is.")]
    scenario: Annotated[str | None, Field(description="The smoke scenario that it judges.")]
    duration_s: float


class ChecklistPart(_Part):
    """Which checklist was applied."""

    name: str
    version: int


class CountsPart(_Part):
    """Number of checks by status."""

    pass_: Annotated[int, Field(alias="pass")]
    fail: int
    skip: int
    unknown: int


class StepPart(_Part):
    """One step of what was decided."""

    summary: str
    commands: list[str]


class DecisionPart(_Part):
    """What the checklist decided in advance about failures."""

    action: Literal["roll back at once", "fix forward", "investigate"]
    checks: list[str]
    decides: str | None
    within: Annotated[str | None, Field(description="By when, in words.")]
    criteria: Annotated[list[str], Field(description="The criterion that each check met, in their order.")]
    steps: Annotated[list[StepPart], Field(description="What to do, in order.")]


class DriftChangePart(_Part):
    """One recorded fact that is otherwise now."""

    fact: str
    old: str | None
    new: str | None
    explains: Annotated[list[str], Field(description="Failed checks that it plausibly explains, likeliest first.")]


class DriftPart(_Part):
    """What changed since the last green run was recorded."""

    lock: str
    recorded: str
    changes: list[DriftChangePart]
    unread: Annotated[list[str], Field(description="Sections that could not be compared, with the reason.")]


class UnusedWaiverPart(_Part):
    """A waiver that matches nothing any more."""

    check: str
    subject: str
    reason: str
    owner: str
    expires: date


class ScenarioPart(_Part):
    """A smoke training that was asked for."""

    id: str
    kind: str
    expect: str


class TrainingPart(_Part):
    """What one case of a smoke training measured."""

    scenario: str
    case: str
    outcome: Annotated[str, Field(description="trained, raised, died, timed-out or skipped.")]
    devices: Literal["gpu", "cpu"]
    replicas: int | None
    losses: Annotated[list[float | None], Field(description="Loss of each epoch; null is not finite.")]
    reference_losses: Annotated[list[float | None], Field(description="The same on one device.")]
    build_s: float | None
    first_step_s: float | None
    step_s: Annotated[float | None, Field(description="Median seconds of a step after the first epoch.")]
    measures: Annotated[dict[str, float | None], Field(description="What only this scenario measures.")]


class GpuWorkPart(_Part):
    """What one GPU did while the smoke trainings ran, sampled twice a second."""

    index: Annotated[int, Field(description="As nvidia-smi counts.")]
    name: str
    samples: int
    mean_utilization_percent: float | None
    peak_utilization_percent: float | None
    peak_memory_bytes: float | None
    peak_temperature_c: float | None
    peak_power_w: float | None
    power_limit_w: float | None
    held_back: Annotated[dict[str, float], Field(description="Why its clocks were not higher, to seconds.")]


class ReportDocument(_Part):
    """The report of one run of ``kdoctor check``."""

    schema_: Annotated[Literal["kdoctor/report/v1"], Field(alias="schema")]
    kdoctor: Annotated[str, Field(description="Version of kdoctor.")]
    verdict: Conclusion
    verdict_reason: str
    exit_code: int
    interrupted: Annotated[bool, Field(description="Whether the user ended the run early.")]
    target: str
    checklist: ChecklistPart
    counts: CountsPart
    started_at: Annotated[str, Field(description="UTC, ISO 8601.")]
    duration_s: float
    scenarios: list[ScenarioPart]
    results: list[ResultPart]
    decisions: list[DecisionPart]
    unused_waivers: list[UnusedWaiverPart]
    drift: Annotated[DriftPart | None, Field(description="None where no green run is on record.")]
    trainings: list[TrainingPart]
    gpu_work: Annotated[list[GpuWorkPart], Field(description="Empty where no training ran on GPUs.")]
    last_green_at: Annotated[str | None, Field(description="When the last run started that passed, UTC, if known.")]


def render_json(report: Report) -> str:
    """The report as JSON, in ASCII, with its line feed."""
    document = make_document(report)
    return json.dumps(document.model_dump(mode="json", by_alias=True), indent=2, allow_nan=False) + "\n"


def report_schema() -> dict[str, Any]:
    """The JSON Schema of the document."""
    schema = ReportDocument.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": SCHEMA}


def make_document(report: Report) -> ReportDocument:
    """The report as its document."""
    return ReportDocument(
        schema_="kdoctor/report/v1",
        kdoctor=__version__,
        verdict=report.verdict.conclusion,
        verdict_reason=report.verdict.reason,
        exit_code=report.verdict.exit_code,
        interrupted=report.interrupted,
        target=report.target,
        checklist=ChecklistPart(name=report.checklist.name, version=report.checklist.version),
        counts=_counts(report),
        started_at=report.started_at,
        duration_s=round(report.duration_s, 3),
        scenarios=[ScenarioPart(id=note.id, kind=note.kind, expect=note.expect) for note in report.scenarios],
        results=[_result(result) for result in report.results],
        decisions=[_decision(decision) for decision in report.decisions],
        unused_waivers=[UnusedWaiverPart(**vars(waiver)) for waiver in report.unused_waivers],
        drift=_drift(report.drift) if report.drift else None,
        trainings=[_training(training) for training in report.trainings],
        gpu_work=[_gpu_work(work) for work in report.gpu_work],
        last_green_at=report.last_green_at or None,
    )


def _counts(report: Report) -> CountsPart:
    counts = report.counts()
    return CountsPart(
        pass_=counts[Status.PASS],
        fail=counts[Status.FAIL],
        skip=counts[Status.SKIP],
        unknown=counts[Status.UNKNOWN],
    )


def _training(training: Training) -> TrainingPart:
    return TrainingPart(
        scenario=training.scenario,
        case=training.case,
        outcome=training.outcome,
        devices=training.devices,
        replicas=training.replicas,
        losses=list(training.losses),
        reference_losses=list(training.reference_losses),
        build_s=training.build_s,
        first_step_s=training.first_step_s,
        step_s=training.step_s,
        measures=dict(training.measures),
    )


def _gpu_work(work: GpuWork) -> GpuWorkPart:
    told = {name: value for name, value in vars(work).items() if name not in ("every_s", "curves")}
    return GpuWorkPart(**told)


def _result(result: Result) -> ResultPart:
    return ResultPart(
        id=result.id,
        family=result.family,
        title=result.title,
        status=result.status,
        severity=result.severity,
        reason=result.reason,
        findings=[_finding(finding) for finding in result.findings],
        evidence=[_evidence(evidence) for evidence in result.evidence],
        unjudged=[UnjudgedPart(subject=item.subject, reason=item.reason) for item in result.unjudged],
        why=result.why,
        blocked_by=result.blocked_by,
        accepted=result.accepted,
        scenario=result.scenario,
        duration_s=round(result.duration_s, 6),
    )


def _finding(judged: JudgedFinding) -> FindingPart:
    finding, waiver = judged.finding, judged.waiver
    return FindingPart(
        subject=finding.subject,
        observed=finding.observed,
        expected=finding.expected,
        remedy=_remedy(finding.remedy),
        rollback=_rollback(finding.rollback),
        waiver=WaiverPart(reason=waiver.reason, owner=waiver.owner, expires=waiver.expires, expired=judged.expired)
        if waiver
        else None,
    )


def _remedy(remedy: Remedy) -> RemedyPart:
    return RemedyPart(summary=remedy.summary, commands=list(remedy.commands), action=remedy.action)


def _rollback(rollback: Rollback) -> RollbackPart:
    return RollbackPart(kind=rollback.kind, why=rollback.why, commands=list(rollback.commands))


def _evidence(evidence: Evidence) -> EvidencePart:
    return EvidencePart(subject=evidence.subject, observed=evidence.observed)


def _decision(decision: Decision) -> DecisionPart:
    return DecisionPart(
        action=decision.action,
        checks=list(decision.checks),
        decides=decision.decides,
        within=decision.within,
        criteria=list(decision.criteria),
        steps=[StepPart(summary=step.summary, commands=list(step.commands)) for step in decision.steps],
    )


def _drift(drift: Drift) -> DriftPart:
    return DriftPart(
        lock=drift.lock,
        recorded=drift.recorded,
        changes=[
            DriftChangePart(fact=item.fact, old=item.old, new=item.new, explains=list(item.explains))
            for item in drift.changes
        ],
        unread=list(drift.unread),
    )
