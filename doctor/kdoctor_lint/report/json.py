"""The JSON report, for programs: a document of its own, versioned."""

from __future__ import annotations

import json
from typing import Any

from kdoctor import __version__
from kdoctor.text.sanitize import clean
from kdoctor_lint.model import LintFinding, LintReport, Rule
from kdoctor_lint.report.words import one_line

SCHEMA = "kdoctor/lint/v1"
"""Keys are added within a version; their meaning changes only with it."""


def render_json(report: LintReport) -> str:
    """The report as JSON, in ASCII, with its line feed."""
    rules = {finding.rule.id: finding.rule for finding in report.findings}
    document = {
        "schema": SCHEMA,
        "kdoctor": __version__,
        "files": list(report.files),
        "findings": [_finding(finding) for finding in report.findings],
        "ignored": [{**_finding(item.finding), "reason": clean(item.reason)} for item in report.ignored],
        "rules": {name: _rule(rule) for name, rule in rules.items()},
        "notes": list(report.notes),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _finding(finding: LintFinding) -> dict[str, Any]:
    spot = finding.spot
    return {
        "rule": finding.rule.id,
        "severity": finding.severity.value,
        "path": spot.path,
        "cell": spot.cell,
        "line": spot.line,
        "column": spot.column,
        "end_line": spot.end_line,
        "end_column": spot.end_column,
        "message": clean(finding.message),
        "source": clean(finding.source),
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {"title": rule.title, "why": one_line(rule.why), "corrected": rule.good, "sources": list(rule.sources)}
