"""The JSON report, for programs."""

import json
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field

from kdoctor.documents import Document, Part
from kdoctor.model import Severity
from kdoctor.text.canvas import Canvas
from kdoctor.text.sanitize import clean
from kdoctor.version import __version__
from kdoctor_lint.model import Finding, LintReport


class LintFinding(Part):
    """A violation of a rule. Lines and columns count from 1."""

    rule: str
    code: Annotated[str, Field(description="The rule's short id, such as KD101.")]
    severity: Severity
    path: str
    cell: Annotated[int | None, Field(description="The notebook's code cell. The line counts within it.")]
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    source: Annotated[str, Field(description="The line of code.")]
    fix: Annotated[
        Literal["safe", "unsafe"] | None, Field(description="Whether --fix, or --fix --unsafe-fixes, fixes it.")
    ] = None


class IgnoredFinding(LintFinding):
    """A finding silenced by a comment in the code."""

    reason: str


class LintRule(Part):
    """A rule with findings."""

    title: str
    why: str
    corrected: Annotated[str, Field(description="Code without the problem.")]
    sources: list[str]


class Lint(Document):
    """The findings in scripts and notebooks."""

    schema_: Annotated[Literal["kdoctor/lint/v1"], Field(alias="schema")]
    kdoctor: str
    files: list[str]
    findings: list[LintFinding]
    ignored: list[IgnoredFinding]
    rules: Annotated[dict[str, LintRule], Field(description="By the id that findings refer to.")]
    notes: list[str]


def render_json(report: LintReport, _: Canvas) -> str:
    """The report as JSON, in ASCII."""
    document = Lint(
        schema_="kdoctor/lint/v1",
        kdoctor=__version__,
        files=[_utf8(file) for file in report.files],
        findings=[LintFinding(**_fields(finding)) for finding in report.findings],
        ignored=[IgnoredFinding(**_fields(item.finding), reason=clean(item.reason)) for item in report.ignored],
        rules={
            name: LintRule(title=rule.title, why=rule.reason, corrected=rule.good, sources=list(rule.sources))
            for name, rule in report.rules.items()
        },
        notes=[_utf8(note) for note in report.notes],
    )
    return json.dumps(document.model_dump(mode="json", by_alias=True), indent=2) + "\n"


def _fields(finding: Finding) -> dict[str, Any]:
    return asdict(finding.spot) | {
        "rule": finding.rule.id,
        "code": finding.rule.code,
        "severity": finding.rule.severity,
        "path": _utf8(finding.spot.path),
        "message": clean(finding.message),
        "source": clean(finding.source),
        "fix": finding.fixed_by,
    }


def _utf8(path: str) -> str:
    """A path with bytes that are not UTF-8 escaped, since JSON cannot contain them."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")
