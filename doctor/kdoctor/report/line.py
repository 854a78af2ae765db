"""One plain line, fit for a mail's subject, a log and a chat: the verdict, and what was decided in advance."""

from __future__ import annotations

from kdoctor.engine.report import Report
from kdoctor.report.phrases import verdict_words


def render_line(report: Report) -> str:
    """``kdoctor PASS in 34.2 s: 8 passed, ...; everything that was asked for passed (cpu-smoke, version 1)``."""
    decided = "".join(f"; {item.action}: {', '.join(item.checks)}" for item in report.decisions)
    checklist = f"({report.checklist.name}, version {report.checklist.version})"
    return " ".join(f"kdoctor {verdict_words(report)}{decided} {checklist}".split()) + "\n"
