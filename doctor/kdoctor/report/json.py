"""The JSON report, for programs."""

import json
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from kdoctor import model
from kdoctor.documents import DIALECT, Document, Part, attribute_docstrings
from kdoctor.engine import report as engine_report
from kdoctor.engine.report import (
    Category,
    Cause,
    ChecklistName,
    Conclusion,
    Decision,
    Drift,
    FixStep,
    GpuWork,
    JudgedFinding,
    Report,
    Result,
    ScenarioNote,
    Training,
    Waiver,
)
from kdoctor.facts import Node
from kdoctor.model import Remedy, Rollback, Status
from kdoctor.records import record
from kdoctor.text.canvas import Canvas
from kdoctor.version import __version__

SCHEMA: Literal["kdoctor/report/v1"] = "kdoctor/report/v1"
"""Keys are added within a version; their meaning changes only with it."""

_WRITTEN = ConfigDict(revalidate_instances="always")
"""The dataclasses of a report are validated like what is read."""


class CoveringWaiver(Part):
    """The waiver that covers a finding."""

    reason: str
    owner: str
    expires: date
    expired: Annotated[bool, Field(description="Whether the finding counts again.")]


class ReportedFinding(Part):
    """One subject with a problem."""

    model_config = _WRITTEN

    subject: str
    observed: str
    brief: str
    """``observed`` in a few words; equal for subjects with the same problem."""
    expected: str
    remedy: Remedy
    rollback: Rollback
    waiver: CoveringWaiver | None
    hidden: bool
    """Whether it does not count because CUDA_VISIBLE_DEVICES hides its GPU from the job."""


@record
class ReportedResult(Result):
    """The result of one check."""

    findings: tuple[ReportedFinding, ...]  # type: ignore[assignment] # flat, where the model nests


class Counts(Part):
    """Number of checks by status."""

    pass_: Annotated[int, Field(alias="pass")]
    fail: int
    skip: int
    unknown: int


class ReportDocument(Document):
    """The report of one run of ``kdoctor check``."""

    model_config = _WRITTEN

    schema_: Annotated[Literal["kdoctor/report/v1"], Field(alias="schema")] = SCHEMA
    kdoctor: str = __version__
    """Version of kdoctor."""
    verdict: Conclusion
    verdict_reason: str
    exit_code: int
    interrupted: bool
    """Whether the user ended the run early."""
    target: str
    checklist: ChecklistName
    counts: Counts
    started_at: str
    """UTC, ISO 8601."""
    duration_s: float
    command: str
    """The command that runs the same checks again; empty if no command did."""
    categories: tuple[Category, ...]
    """Each family of checks in one line."""
    causes: tuple[Cause, ...]
    """What is wrong, in the order in which to solve it."""
    plan: tuple[FixStep, ...]
    """How to get the job started, in order."""
    scenarios: tuple[ScenarioNote, ...]
    results: tuple[ReportedResult, ...]
    decisions: tuple[Decision, ...]
    unused_waivers: tuple[Waiver, ...]
    drift: Drift | None
    """None if no passing run is recorded."""
    trainings: tuple[Training, ...]
    gpu_work: tuple[GpuWork, ...]
    """Empty if no training ran on GPUs."""
    last_green_at: str | None
    """When the last passing run started, UTC, if known."""
    node: Node | None
    """Which node of a job this is, if that was recorded."""
    facts: Mapping[str, Mapping[str, str]]
    """What the nodes of a job should share, by section. ``kdoctor fleet merge`` compares them."""


def render_json(report: Report, canvas: Canvas) -> str:
    """The report as JSON, in ASCII, with its line feed."""
    document = make_document(report)
    return json.dumps(document.model_dump(mode="json", by_alias=True), indent=2, allow_nan=False) + "\n"


class _EveryKey(GenerateJsonSchema):
    """Every key is written, so each is required and none has a default."""

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: ARG002, FBT001 - pydantic's signature
        return True

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def report_schema() -> dict[str, Any]:
    """The JSON Schema of the document."""
    schema = ReportDocument.model_json_schema(mode="serialization", schema_generator=_EveryKey)
    records = {**vars(model), **vars(engine_report), **globals()}
    for name, part in {**schema["$defs"], ReportDocument.__name__: schema}.items():
        fields = part.get("properties", {})
        for field, text in attribute_docstrings(records[name]).items() if fields else ():
            fields.get(field, {}).setdefault("description", text)
    return {"$schema": DIALECT, **schema, "title": SCHEMA}


def make_document(report: Report) -> ReportDocument:
    """The report as its document."""
    shared = {name: value for name, value in vars(report).items() if name in ReportDocument.model_fields}
    return ReportDocument.model_validate(
        {
            **shared,
            "verdict": report.verdict.conclusion,
            "verdict_reason": report.verdict.reason,
            "exit_code": report.verdict.exit_code,
            "counts": report.counts(),
            "duration_s": round(report.duration_s, 3),
            "results": [_result(result) for result in report.results],
            "last_green_at": report.last_green_at or None,
        }
    )


def _result(result: Result) -> dict[str, Any]:
    """A result; of a skipped check without the texts that explain it, which would be most of a CPU run's report."""
    texts = {"why": "", "sources": ()} if result.status is Status.SKIP else {}
    duration_s, findings = round(result.duration_s, 6), [_finding(judged) for judged in result.findings]
    return {**vars(result), **texts, "duration_s": duration_s, "findings": findings}


def _finding(judged: JudgedFinding) -> dict[str, Any]:
    waiver = judged.waiver and {**vars(judged.waiver), "expired": judged.expired}
    shared = {name: value for name, value in vars(judged.finding).items() if name in ReportedFinding.model_fields}
    return {**shared, "brief": judged.finding.headline, "waiver": waiver, "hidden": judged.hidden}
