"""JUnit XML, for CI systems: a suite for each family, a case for each check; one for those skipped for one reason."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from kdoctor.engine.report import Report, Result
from kdoctor.model import Severity, Status
from kdoctor.report.phrases import Label, by_family, counting, describe_reason, headline, skipped_together
from kdoctor.report.sections import check, failure, plain
from kdoctor.text.canvas import Canvas


def render_junit(report: Report, canvas: Canvas) -> str:
    """The report as JUnit XML.

    A failed check is a failure whose type is its severity. An unknown one is an error, or skipped if it is accepted.
    Evidence is in system-out. So are failures below the run's ``--fail-on``, so that a CI system reports a failure
    exactly when the exit code is not 0.
    """
    root = ET.Element("testsuites", name="kdoctor", time=f"{report.duration_s:.3f}")
    for family, results in by_family(report.results):
        _suite(root, family, results, report)
    _tally(root, report.results, report.fail_on)
    del root.attrib["skipped"]  # the schemas of Jenkins and Ant allow it on a suite only
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
    for members in skipped_together(results):
        if len(members) > 1:
            case = ET.SubElement(suite, "testcase", name=describe_reason(members[0]), classname=f"kdoctor.{family}")
            case.set("time", "0.000")
            ET.SubElement(case, "skipped", message=", ".join(result.id for result in members))
        else:
            _case(suite, members[0], report)


def _tally(element: ET.Element, results: Sequence[Result], fail_on: Severity) -> None:
    cases = [members[0] for _, group in by_family(results) for members in skipped_together(group)]
    kinds = [_element(result, fail_on) for result in cases]
    element.set("tests", str(len(kinds)))
    element.set("failures", str(kinds.count("failure")))
    element.set("errors", str(kinds.count("error")))
    element.set("skipped", str(kinds.count("skipped")))


def _element(result: Result, fail_on: Severity) -> str | None:
    """The name of the element for a check's status; None for a pass, or a failure that does not count."""
    counts = result.severity.rank >= fail_on.rank
    if result.status is Status.UNKNOWN:
        return "error" if counts and not result.accepted else "skipped"
    if result.status is Status.FAIL:
        return "failure" if counts else None
    return "skipped" if result.status is Status.SKIP else None


def _case(suite: ET.Element, result: Result, report: Report) -> None:
    case = ET.SubElement(
        suite, "testcase", name=result.id, classname=f"kdoctor.{result.family}", time=f"{result.duration_s:.3f}"
    )
    kind = _element(result, report.fail_on)
    causes = [cause.checks[0] for cause in report.causes if result.id in cause.explains]
    fixes = (Label.FIX, Label.LOOK, Label.UNDO) if causes else ()
    details = "\n\n".join(
        "\n".join([*block.findings, *plain(field for field in block.fields if field.label not in fixes)])
        for block in failure(result)
    )
    details += f"\nExplained by {causes[0]}, whose fix is enough" if causes else ""
    if kind == "failure":
        findings = counting(result)
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        message = f"{headline(findings[0].finding)}; expected: {findings[0].finding.expected}{more}"
        ET.SubElement(case, "failure", type=result.severity.value, message=message).text = details
    elif kind == "error":
        ET.SubElement(case, "error", type="unknown", message=describe_reason(result))
    elif kind == "skipped":
        ET.SubElement(case, "skipped", message=describe_reason(result))
    lines = plain(check(result).fields)
    if details and kind is None:
        lines.append(f"{result.severity.value}, below --fail-on {report.fail_on.value}: {details}")
    if lines:
        ET.SubElement(case, "system-out").text = "\n".join(lines)
