"""JUnit XML, for CI systems: a suite for each family, a case for each check."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from kdoctor.engine.report import JudgedFinding, Report, Result
from kdoctor.model import Severity, Status
from kdoctor.report.phrases import by_family, counting, reason_words, rollback_words


def render_junit(report: Report) -> str:
    """The report as JUnit XML.

    A failed check is a failure of the type of its severity, an unknown one an error, a skipped one or one whose
    unknown is accepted skipped. Evidence stands in system-out. What is below the run's ``--fail-on`` stands there,
    too, and is no failure: a CI system shows red exactly where the exit code is not 0.
    """
    root = ET.Element("testsuites", name="kdoctor", time=f"{report.duration_s:.3f}")
    for family, results in by_family(report.results):
        _suite(root, family, results, report)
    _tally(root, report.results, report.fail_on)
    del root.attrib["skipped"]  # the schemas of Jenkins and of Ant know it on a suite alone
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, family: str, results: Sequence[Result], report: Report) -> None:
    duration = sum(result.duration_s for result in results)
    suite = ET.SubElement(root, "testsuite", name=f"kdoctor.{family}", time=f"{duration:.3f}")
    if report.started_at:
        suite.set("timestamp", report.started_at)
    _tally(suite, results, report.fail_on)
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("target", report.target),
        ("checklist", f"{report.checklist.name} v{report.checklist.version}"),
        ("verdict", report.verdict.conclusion.value),
    ):
        ET.SubElement(properties, "property", name=name, value=value)
    for result in results:
        _case(suite, result, report.fail_on)


def _tally(element: ET.Element, results: Sequence[Result], fail_on: Severity) -> None:
    kinds = [_element(result, fail_on) for result in results]
    element.set("tests", str(len(results)))
    element.set("failures", str(kinds.count("failure")))
    element.set("errors", str(kinds.count("error")))
    element.set("skipped", str(kinds.count("skipped")))


def _element(result: Result, fail_on: Severity) -> str | None:
    """The name of the element that tells what became of a check; None for a pass, or a failure that does not count."""
    counts = result.severity.rank >= fail_on.rank
    if result.status is Status.UNKNOWN:
        return "error" if counts and not result.accepted else "skipped"
    if result.status is Status.FAIL:
        return "failure" if counts else None
    return "skipped" if result.status is Status.SKIP else None


def _case(suite: ET.Element, result: Result, fail_on: Severity) -> None:
    case = ET.SubElement(
        suite, "testcase", name=result.id, classname=f"kdoctor.{result.family}", time=f"{result.duration_s:.3f}"
    )
    kind = _element(result, fail_on)
    findings = counting(result)
    if kind == "failure":
        first = findings[0].finding
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        message = f"{first.subject}: {first.observed}; expected {first.expected}{more}"
        failure = ET.SubElement(case, "failure", type=result.severity.value, message=message)
        failure.text = _details(result, findings)
    elif kind == "error":
        ET.SubElement(case, "error", type="unknown", message=reason_words(result))
    elif kind == "skipped":
        ET.SubElement(case, "skipped", message=reason_words(result))
    lines = [f"{evidence.subject}: {evidence.observed}" for evidence in result.evidence]
    if findings and kind is None:
        lines += [f"{result.severity.value}, below --fail-on {fail_on.value}: {_details(result, findings)}"]
    if lines:
        ET.SubElement(case, "system-out").text = "\n".join(lines)


def _details(result: Result, findings: Sequence[JudgedFinding]) -> str:
    parts = [f"Not so: {result.title}", f"Why: {result.why}"]
    for judged in findings:
        finding = judged.finding
        parts += [
            "",
            f"Subject: {finding.subject}",
            f"Observed: {finding.observed}",
            f"Expected: {finding.expected}",
            f"Fix: {finding.remedy.summary}",
            *(f"    {command}" for command in finding.remedy.commands),
            f"Rollback: {rollback_words(finding.rollback)}",
            *(f"    {command}" for command in finding.rollback.commands),
        ]
    parts += [f"Not judged: {item.subject}: {item.reason}" for item in result.unjudged]
    return "\n".join(parts)
