"""Annotations of GitHub Actions: workflow commands that show findings in a run and in a pull request.

Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions.
"""

from collections.abc import Iterator

from kdoctor.engine.report import Conclusion, Mark, Report
from kdoctor.model import Severity
from kdoctor.report.causes import cause_blocks, gap_blocks, note_blocks
from kdoctor.report.phrases import verdict_line
from kdoctor.report.sections import Block, plain
from kdoctor.text.canvas import Canvas


def render_github(report: Report, canvas: Canvas) -> str:
    """One command for each cause, in the order in which to solve them, and a last line for the log.

    What fails the run is an error. Other failures and unknowns are warnings, and those of severity info are notices.
    """
    return "\n".join([*_annotations(report), f"kdoctor {verdict_line(report)}", ""])


def _annotations(report: Report) -> Iterator[str]:
    """One for each cause, and one for all that could not be judged: GitHub shows ten of a kind only."""
    for block in (*cause_blocks(report), *note_blocks(report), *gap_blocks(report)):
        message = "\n".join([*block.findings, *plain(field for field in block.fields if not field.detail)])
        yield command(_level(block, report), message, title=f"kdoctor: {block.id}" if block.id else "kdoctor")


def _level(block: Block, report: Report) -> str:
    if block.mark is Mark.UNKNOWN:
        return "warning" if report.verdict.conclusion is Conclusion.PASS else "error"
    severity = Severity(block.mark or block.note)
    if severity.rank >= report.fail_on.rank:
        return "error"
    return "notice" if severity is Severity.INFO else "warning"


def command(level: str, message: str, **properties: object) -> str:
    """A workflow command."""
    listed = ",".join(
        f"{name}={_data(str(value)).replace(':', '%3A').replace(',', '%2C')}" for name, value in properties.items()
    )
    return f"::{level} {listed}::{_data(message)}"


def _data(text: str) -> str:
    """As the runner reads the part after the second pair of colons."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
