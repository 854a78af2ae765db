"""Labels and phrases that all formats share."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from kdoctor.engine.report import Conclusion, Decision, GpuWork, JudgedFinding, Mark, Report, Result, Waiver
from kdoctor.engine.verdict import ALL_PASSED
from kdoctor.model import Finding, Severity, Status, family_order
from kdoctor.text.lists import counted

_FAMILY_TITLES = {"gpu": "GPUs", "smoke": "Training"}
"""The titles that are not the family's name."""
STATUS_NAMES = {Status.PASS: "passed", Status.FAIL: "failed", Status.SKIP: "skipped", Status.UNKNOWN: "unknown"}
MARK_NAMES = {
    Mark.PASS: "PASS",
    Mark.WARNING: "WARNING",
    Mark.ERROR: "FAIL",
    Mark.INFO: "NOTE",
    Mark.SKIP: "SKIP",
    Mark.UNKNOWN: "UNKNOWN",
}
"""A failure of severity warning is a warning, and one of severity info is a note."""
SIGNS = {
    Mark.PASS: ("✓", "ok"),
    Mark.WARNING: ("!", "!!"),
    Mark.ERROR: ("✗", "XX"),
    Mark.INFO: ("i", "--"),
    Mark.SKIP: ("–", "--"),  # noqa: RUF001 - a dash, wider than a hyphen
    Mark.UNKNOWN: ("?", "??"),
}
"""Each mark in UTF-8 and in ASCII."""
VERDICT_MARKS = {Conclusion.PASS: Mark.PASS, Conclusion.FAIL: Mark.ERROR, Conclusion.UNKNOWN: Mark.UNKNOWN}
CONCLUSIONS = {Conclusion.PASS: "READY", Conclusion.FAIL: "NOT READY", Conclusion.UNKNOWN: "INCONCLUSIVE"}
INTERRUPTED = "Run interrupted: results are incomplete."


class Label:
    """The labels of a report, the same in every format."""

    ALSO_EXPLAINS = "Also explains"
    CHANGED = "Changed"
    CHECK = "Check"
    CHECK_AGAIN = "Check again"
    CHECK_NEW = "Check a new recording"
    CHECKLIST = "Checklist"
    DECISION_OWNER = "Decision owner"
    EXPECTED = "Expected"
    EVERY_CHECK = "Every check"
    FIX = "Fix"
    LATER = "Later"
    LOOK = "Look"
    LAST_PASSING = "Last passing run"
    MAY_EXPLAIN = "May explain"
    NOT_COMPARED = "Not compared"
    NOT_CHECKED = "Not checked because of it"
    NOT_JUDGED = "Not judged"
    OBSERVED = "Observed"
    PROBLEM_OF = "Problem of"
    RECORD = "To judge more"
    UNDO = "To undo"
    RULE = "Rule"
    SOURCE = "Source"
    STARTED = "Started"
    TARGET = "Target"
    WAIVER = "Waiver"
    WHY = "Why it matters"
    WORKAROUND = "Start now"


def check_again(report: Report) -> str:
    """What to call the command that runs the checks again. A recording stays as it is."""
    return Label.CHECK_NEW if report.recorded else Label.CHECK_AGAIN


def family_title(family: str) -> str:
    """``Driver``, ``GPUs``, ``Network``: also of families that only another kdoctor knows."""
    return _FAMILY_TITLES.get(family, family.capitalize())


def by_family(results: Iterable[Result]) -> Iterator[tuple[str, list[Result]]]:
    """The results by family; within a family in the report's order."""
    ordered = sorted(results, key=lambda result: family_order(result.family))
    for family, members in groupby(ordered, key=lambda result: result.family):
        yield family, list(members)


def failures(report: Report) -> list[Result]:
    """The failed checks, most severe first; those of one severity in the report's order."""
    failed = [result for result in report.results if result.status is Status.FAIL]
    return sorted(failed, key=lambda result: result.severity.rank, reverse=True)


def counting(result: Result) -> list[JudgedFinding]:
    """The findings that make a check fail."""
    return [finding for finding in result.findings if finding.counts]


def headline(finding: Finding) -> str:
    """``GPU 3 (0000:40:00.0): on the PCI bus, but the driver does not list it``."""
    return f"{finding.subject}: {finding.observed}"


def seconds(value: float) -> str:
    """``0.31 s``, ``34.2 s``, ``3 min 12 s``."""
    if value < 10:  # noqa: PLR2004 - where a second decimal is still significant
        return f"{value:.2f} s"
    if value < 60:  # noqa: PLR2004 - a minute
        return f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60:02} s"


def instant(text: str) -> str:
    """``2030-01-02 03:04:05 UTC``, from ISO 8601 in UTC. Other texts stay."""
    return re.sub(r"^(\d{4}-\d\d-\d\d)T([\d:.]+)(?:Z|\+00:00)$", r"\1 \2 UTC", text)


def describe_gpu_work(work: GpuWork) -> str:
    """``mean use 43 %, peak 97 %, 900 MiB, 61 C, 410 of 700 W; SW Power Cap 3.5 s``."""
    parts = []
    if work.mean_utilization_percent is not None and work.peak_utilization_percent is not None:
        parts.append(f"mean use {work.mean_utilization_percent:.0f} %, peak {work.peak_utilization_percent:.0f} %")
    if work.peak_memory_bytes is not None:
        parts.append(f"{work.peak_memory_bytes / 1024**2:.0f} MiB")
    if work.peak_temperature_c is not None:
        parts.append(f"{work.peak_temperature_c:.0f} C")
    if work.peak_power_w is not None:
        limit = "" if work.power_limit_w is None else f" of {work.power_limit_w:.0f}"
        parts.append(f"{work.peak_power_w:.0f}{limit} W")
    held = ", ".join(f"{name} {duration:.1f} s" for name, duration in work.held_back.items())
    return (", ".join(parts) or f"{counted(work.samples, 'sample')} without a reading") + (f"; {held}" if held else "")


def describe_criteria(decision: Decision) -> str:
    """``at_once: versions.*``; with the checks of each criterion if there are several."""
    checks: dict[str, list[str]] = {}
    for check, criterion in zip(decision.checks, decision.criteria, strict=True):
        checks.setdefault(criterion, []).append(check)
    if len(checks) == 1:
        return next(iter(checks))
    return "; ".join(f"{criterion} ({', '.join(ids)})" for criterion, ids in checks.items())


def describe_waiver(waiver: Waiver, *, expired: bool = False) -> str:
    """``until 2030-12-31, by ml-platform: the riser card is replaced in March``."""
    return f"{'expired on' if expired else 'until'} {waiver.expires}, by {waiver.owner}: {waiver.reason}"


def skipped_together(results: Iterable[Result]) -> Iterator[tuple[Result, ...]]:
    """Each check alone, in order; those that were skipped for the same reason together, at the place of the first."""
    groups: dict[str | int, list[Result]] = {}
    for number, result in enumerate(results):
        groups.setdefault(describe_reason(result) if result.status is Status.SKIP else number, []).append(result)
    yield from map(tuple, groups.values())


def describe_reason(result: Result) -> str:
    """Why a check was skipped or is unknown, and whether that is accepted."""
    reason = result.reason or "no reason was given"
    return f"{reason} (accepted: {result.accepted})" if result.accepted else reason


def counts(report: Report) -> list[tuple[Mark, str]]:
    """``(Mark.PASS, "92 passed")`` and so on, without those that are 0.

    Causes are counted, not the checks that report them. Notes, and what matters only after another cause is solved, are
    left out.
    """
    marks = report.marks()
    causes = Counter(cause.severity for cause in report.causes if not cause.after)
    left_out = sum(result.left_out for result in report.results)
    numbers = (
        (Mark.ERROR, counted(causes[Severity.ERROR], "problem")),
        (Mark.PASS, f"{marks[Mark.PASS]} passed"),
        (Mark.WARNING, counted(causes[Severity.WARNING], "warning")),
        (Mark.UNKNOWN, f"{marks[Mark.UNKNOWN]} unknown"),
        (Mark.SKIP, f"{left_out} left out"),
        (Mark.SKIP, f"{marks[Mark.SKIP] - left_out} skipped"),
    )
    return [(mark, text) for mark, text in numbers if not text.startswith("0 ")]


def tally(report: Report) -> str:
    """``92 passed, 1 warning, 2 left out, 4 skipped``: left out by an option, or skipped for another reason."""
    return ", ".join(text for _, text in counts(report)) or "no check"


def verdict_line(report: Report) -> str:
    """The verdict in one line: the conclusion and its reason come first, where a narrow terminal shows them."""
    verdict = report.verdict
    reason = " ".join(verdict.reason.split())
    if verdict.conclusion is not Conclusion.PASS:
        text = f"{reason}; {tally(report)}"
    else:
        text = tally(report) + (f" ({reason})" if reason != ALL_PASSED else "")
    return f"{CONCLUSIONS[verdict.conclusion]} in {seconds(report.duration_s)}: {text}"
