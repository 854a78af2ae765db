"""SARIF 2.1.0, the OASIS standard that code scanning services and editors read."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kdoctor.model import Severity
from kdoctor.text.canvas import Canvas
from kdoctor.text.sanitize import clean
from kdoctor.version import __version__
from kdoctor_lint.model import Finding, LintReport, Rule, Spot
from kdoctor_lint.registry import RULES

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_ORDER = tuple(RULES)


def render_sarif(report: LintReport, _: Canvas) -> str:
    """The report as SARIF, with all rules. Findings silenced by comments are suppressed results."""
    suppressed = [
        {**_result(item.finding), "suppressions": [{"kind": "inSource", "justification": clean(item.reason)}]}
        for item in report.ignored
    ]
    driver = {"name": "kdoctor lint", "version": __version__, "rules": [_rule(rule) for rule in RULES.values()]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [*(_result(finding) for finding in report.findings), *suppressed],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    described = {
        "id": rule.id,
        "name": "".join(part.capitalize() for part in rule.id.partition(".")[2].split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.reason},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.code]},
        "help": {
            "text": f"{rule.reason}\n\n{rule.fix}\n\n{rule.good}",
            "markdown": f"{rule.reason}\n\n{rule.fix}\n\n```python\n{rule.good}```\n",
        },
    }
    pages = [source for source in rule.sources if source.startswith("https://")]
    return {**described, "helpUri": pages[0]} if pages else described


def _result(finding: Finding) -> dict[str, Any]:
    spot = finding.spot
    cell = f"cell {spot.cell}, line {spot.line}: " if spot.cell else ""
    return {
        "ruleId": finding.rule.id,
        "ruleIndex": _ORDER.index(finding.rule.id),
        "level": _LEVELS[finding.rule.severity],
        "message": {"text": clean(f"{cell}{finding.message}")},
        "locations": [_location(spot)],
    }


def _location(spot: Spot) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(spot.path)}}
    if spot.cell:
        # The lines of a cell are not the lines of the notebook's file.
        return {"physicalLocation": place, "logicalLocations": [{"name": f"cell {spot.cell}", "kind": "module"}]}
    place["region"] = {
        "startLine": spot.line,
        "startColumn": spot.column,
        "endLine": spot.end_line,
        "endColumn": max(spot.end_column, spot.column) if spot.end_line == spot.line else spot.end_column,
    }
    return {"physicalLocation": place}


def _uri(path: str) -> str:
    if path == "-":
        return "stdin"
    return Path(path).as_uri() if Path(path).is_absolute() else quote(Path(path).as_posix(), errors="replace")
