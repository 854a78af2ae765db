"""Wordings that several places share."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor.text.lists import counted
from kdoctor_lint.model import LintReport, Rule

_WIDTH = 80
_INDENT = "  "


def one_line(text: str) -> str:
    """A text that is wrapped in the source, as one line."""
    return " ".join(text.split())


def summary(report: LintReport) -> str:
    """``3 findings (1 error, 2 warnings, 0 infos) in 2 files; 1 ignored``."""
    parts = ", ".join(counted(report.count(severity), severity.value) for severity in reversed(tuple_of_severities()))
    found = counted(len(report.findings), "finding")
    ignored = f"; {len(report.ignored)} ignored" if report.ignored else ""
    inside = f" in {counted(len(report.files), 'file')}{ignored}"
    return (f"{found} ({parts})" if report.findings else "no finding") + inside


def tuple_of_severities() -> tuple[Severity, ...]:
    """From the least to the gravest."""
    return (Severity.INFO, Severity.WARNING, Severity.ERROR)


def explain(rule: Rule) -> str:
    """What a rule is about, in full, for a terminal."""
    lines = [f"{rule.id} ({rule.severity.value})", *_paragraph(rule.title), "", "Why", *_paragraph(rule.why)]
    lines += ["", "Instead of", *code(rule.bad), "", "write", *code(rule.good)]
    lines += ["", "Sources", *(f"{_INDENT}{source}" for source in rule.sources)]
    if rule.ignorable:
        lines += ["", "To silence it on a line", f"{_INDENT}# kdoctor: ignore[{rule.id}] why it is right here"]
    return "\n".join([*lines, ""])


def code(text: str, indent: str = _INDENT * 2) -> Iterator[str]:
    """Code, line by line, as it is."""
    for line in text.rstrip("\n").split("\n"):
        yield f"{indent}{line}".rstrip()


def _paragraph(text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        one_line(text),
        _WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
