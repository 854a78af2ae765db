"""Annotations of GitHub Actions: workflow commands that show findings on the page of a run and of a pull request.

Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.engine.report import Report, Result
from kdoctor.model import Severity, Status
from kdoctor.report.phrases import counting, failures, reason_words, verdict_words


def render_github(report: Report) -> str:
    """One command a finding, the gravest first, since GitHub shows ten of a kind only; and a last line for the log.

    What makes the run fail is an error; other failures and unknowns are warnings, and those of severity info notices.
    """
    return "\n".join([*_annotations(report), f"kdoctor {verdict_words(report)}", ""])


def _annotations(report: Report) -> Iterator[str]:
    for result in reversed(failures(report)):
        for judged in counting(result):
            finding = judged.finding
            message = (
                f"{finding.subject}: {finding.observed}; expected {finding.expected}\n"
                f"Fix: {finding.remedy.summary}" + "".join(f"\n  {command}" for command in finding.remedy.commands)
            )
            yield _command(_level(result, report.fail_on), result.id, message)
    for result in report.results:
        if result.status is Status.UNKNOWN and not result.accepted:
            level = _level(result, report.fail_on)
            yield _command(level, result.id, f"could not be judged: {reason_words(result)}")


def _level(result: Result, fail_on: Severity) -> str:
    if result.severity.rank >= fail_on.rank:
        return "error"
    return "notice" if result.severity is Severity.INFO else "warning"


def _command(level: str, check_id: str, message: str) -> str:
    return f"::{level} title={_property(f'kdoctor: {check_id}')}::{_data(message)}"


def _data(text: str) -> str:
    """As the runner reads the part after the second pair of colons."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
