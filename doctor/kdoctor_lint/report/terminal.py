"""The report for a terminal: the findings, with the fix of each rule once."""

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor.text.canvas import Canvas
from kdoctor.text.lists import counted
from kdoctor.text.sanitize import clean, clean_line
from kdoctor.text.wrap import wrap
from kdoctor_lint.model import Finding, LintReport

_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.INFO: "1;36"}


def render_terminal(report: LintReport, canvas: Canvas) -> str:
    """The report as text of the canvas's width. Paths and code are not wrapped."""
    first = {finding.rule.id: finding for finding in reversed([one for one in report.findings if not one.own_fix])}
    lines: list[str] = []
    for finding in report.findings:
        fix = finding.own_fix or (finding.rule.fix if first[finding.rule.id] is finding else "")
        lines += _finding(finding, fix, canvas)
    lines += [clean_line(note) for note in report.notes]
    lines.append(_coloured(summary(report), "1", canvas))
    lines += _fixable(report)
    if report.rules:
        worst = max(report.rules.values(), key=lambda rule: rule.severity.rank)
        lines.append(f"Why, and an example: kdoctor explain {worst.code}")
    return "\n".join([*lines, ""])


def summary(report: LintReport) -> str:
    """``3 findings (1 error, 2 warnings) in 2 files, 1 ignored``."""
    severities = [finding.rule.severity for finding in report.findings]
    counts = ", ".join(counted(severities.count(item), item.value) for item in _COLOURS if item in severities)
    found = f"{counted(len(severities), 'finding')} ({counts})" if severities else "No findings"
    ignored = f", {len(report.ignored)} ignored" if report.ignored else ""
    return f"{found} in {counted(len(report.files), 'file')}{ignored}"


def _fixable(report: LintReport) -> Iterator[str]:
    kinds = [finding.fixed_by for finding in report.findings]
    safe, unsafe = kinds.count("safe"), kinds.count("unsafe")
    if safe:
        yield f"{safe} can be fixed with --fix"
    if unsafe:
        yield f"{unsafe} can be fixed with --fix --unsafe-fixes; review the changes"
    if by_hand := kinds.count(None):
        yield f"{by_hand} must be fixed by hand"


def _finding(finding: Finding, fix: str, canvas: Canvas) -> Iterator[str]:
    severity = finding.rule.severity
    shown = _coloured(severity.value, _COLOURS[severity], canvas)
    yield f"{clean_line(str(finding.spot))}: {shown}: {finding.rule.code} {finding.rule.id}"
    yield from wrap(clean(finding.message), canvas.width, first="  ")
    if finding.source:
        yield f"    {_coloured(clean_line(finding.source), '2', canvas)}"
    if fix:
        yield from wrap(f"Fix: {clean(fix)}", canvas.width, first="  ")
    yield ""


def _coloured(text: str, style: str, canvas: Canvas) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if canvas.colour else text
