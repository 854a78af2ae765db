"""Annotations of GitHub Actions: workflow commands that show findings in a run and in a pull request.

Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions.
"""

from collections.abc import Iterator

from kdoctor.engine.report import Report, Result
from kdoctor.model import Severity, Status
from kdoctor.report.phrases import Label, counting, describe_reason, failures, headline, verdict_line
from kdoctor.report.sections import Field, plain
from kdoctor.text.canvas import Canvas


def render_github(report: Report, canvas: Canvas) -> str:
    """One command for each finding, and a last line for the log.

    What fails the run is an error. Other failures and unknowns are warnings, and those of severity info are notices.
    The most severe come first, since GitHub shows ten of a kind only.
    """
    return "\n".join([*_annotations(report), f"kdoctor {verdict_line(report)}", ""])


def _annotations(report: Report) -> Iterator[str]:
    for result in failures(report):
        for judged in counting(result):
            finding = judged.finding
            fields = [
                Field(label=Label.EXPECTED, text=finding.expected),
                Field(
                    label=Label.FIX,
                    text=finding.remedy.summary,
                    commands=finding.remedy.commands or finding.remedy.look,
                ),
            ]
            message = "\n".join([headline(finding), *plain(fields)])
            yield command(_level(result, report.fail_on), message, title=f"kdoctor: {result.id}")
    for result in report.results:
        if result.status is Status.UNKNOWN and not result.accepted:
            message = f"could not be judged: {describe_reason(result)}"
            yield command(_level(result, report.fail_on), message, title=f"kdoctor: {result.id}")


def _level(result: Result, fail_on: Severity) -> str:
    if result.severity.rank >= fail_on.rank:
        return "error"
    return "notice" if result.severity is Severity.INFO else "warning"


def command(level: str, message: str, **properties: object) -> str:
    """A workflow command."""
    listed = ",".join(
        f"{name}={_data(str(value)).replace(':', '%3A').replace(',', '%2C')}" for name, value in properties.items()
    )
    return f"::{level} {listed}::{_data(message)}"


def _data(text: str) -> str:
    """As the runner reads the part after the second pair of colons."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
