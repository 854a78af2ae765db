"""One plain line for a mail's subject, a log or a chat: the verdict, and what the failure policy says."""

from kdoctor.engine.report import Report
from kdoctor.report.phrases import verdict_line
from kdoctor.text.canvas import Canvas


def render_line(report: Report, canvas: Canvas) -> str:
    """``kdoctor PASS in 34.2 s: 8 passed, ...; all selected checks passed (cpu-smoke, version 1)``."""
    possible = [item for item in report.decisions if report.drift or item.action != "roll back at once"]
    failed = {check for cause in report.causes if cause.severity.rank >= report.fail_on.rank for check in cause.checks}
    named = [(item.action, [check for check in item.checks if check in failed]) for item in possible]
    decided = "".join(f"; {action}: {', '.join(checks)}" for action, checks in named if checks)
    checklist = f"({report.checklist.name}, version {report.checklist.version})"
    return " ".join(f"kdoctor {verdict_line(report)}{decided} {checklist}".split()) + "\n"
