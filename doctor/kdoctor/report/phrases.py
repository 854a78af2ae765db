"""Wordings that several formats share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from kdoctor.engine.report import Decision, GpuWork, JudgedFinding, Report, Result
from kdoctor.model import FAMILIES, Rollback, Status

FAMILY_TITLES = {
    "versions": "Versions",
    "driver": "Driver",
    "gpu": "GPUs",
    "topology": "Topology",
    "host": "Host",
    "environment": "Environment",
    "smoke": "Smoke trainings",
    "cluster": "Cluster",
    "job": "Your job",
}
STATUS_WORDS = {Status.PASS: "passed", Status.FAIL: "failed", Status.SKIP: "skipped", Status.UNKNOWN: "unknown"}


def by_family(results: Iterable[Result]) -> Iterator[tuple[str, list[Result]]]:
    """The results in the order of ``FAMILIES``; within a family in the report's order."""
    ordered = sorted(results, key=lambda result: FAMILIES.index(result.family))
    for family, members in groupby(ordered, key=lambda result: result.family):
        yield family, list(members)


def failures(report: Report) -> list[Result]:
    """What failed, the gravest last, where the reader's eye is."""
    failed = [result for result in report.results if result.status is Status.FAIL]
    return sorted(failed, key=lambda result: result.severity.rank)


def waived(report: Report) -> list[tuple[Result, JudgedFinding]]:
    """Every finding that a waiver covers."""
    return [(result, finding) for result in report.results for finding in result.findings if not finding.counts]


def counting(result: Result) -> list[JudgedFinding]:
    """The findings that make a check fail."""
    return [finding for finding in result.findings if finding.counts]


def counts(report: Report) -> str:
    """``12 passed, 1 failed, 3 skipped, 0 unknown``."""
    return ", ".join(f"{number} {STATUS_WORDS[status]}" for status, number in report.counts().items())


def seconds(value: float) -> str:
    """``0.31 s``, ``34.2 s``, ``3 min 12 s``."""
    if value < 10:  # noqa: PLR2004 - where a second decimal still says something
        return f"{value:.2f} s"
    if value < 60:  # noqa: PLR2004 - a minute
        return f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60:02} s"


def gpu_work_words(work: GpuWork) -> str:
    """``busy 43 % (at most 97 %), 900 MiB, 61 degrees C, 410 of 700 W; SW Power Cap 3.5 s``."""
    parts = []
    if work.mean_utilization_percent is not None and work.peak_utilization_percent is not None:
        parts.append(f"busy {work.mean_utilization_percent:.0f} % (at most {work.peak_utilization_percent:.0f} %)")
    if work.peak_memory_bytes is not None:
        parts.append(f"{work.peak_memory_bytes / 1024**2:.0f} MiB")
    if work.peak_temperature_c is not None:
        parts.append(f"{work.peak_temperature_c:.0f} degrees C")
    if work.peak_power_w is not None:
        limit = "" if work.power_limit_w is None else f" of {work.power_limit_w:.0f}"
        parts.append(f"{work.peak_power_w:.0f}{limit} W")
    held = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in work.held_back.items())
    return (", ".join(parts) or f"{work.samples} samples without a reading") + (f"; {held}" if held else "")


def criteria_words(decision: Decision) -> str:
    """``at_once: versions.* (versions.cuda-build); no criterion names it (host.memory)``."""
    by_criterion: dict[str, list[str]] = {}
    for check, criterion in zip(decision.checks, decision.criteria, strict=True):
        by_criterion.setdefault(criterion, []).append(check)
    said = {criterion: ", ".join(checks) for criterion, checks in by_criterion.items()}
    return "; ".join(text if text.endswith(f": {ids}") else f"{text} ({ids})" for text, ids in said.items())


def rollback_words(rollback: Rollback) -> str:
    """What a rollback does, or why there is none."""
    lead = {"commands": "", "irreversible": "There is no way back: ", "nothing": "Nothing to roll back: "}
    return lead[rollback.kind] + rollback.why


def reason_words(result: Result) -> str:
    """Why a check was skipped or is unknown, and whether that is accepted."""
    reason = result.reason or "no reason was given"
    return f"{reason} (accepted: {result.accepted})" if result.accepted else reason


def verdict_words(report: Report) -> str:
    """The verdict in one line: the word, the counts and the time first, where a narrow terminal shows them."""
    verdict = report.verdict
    word = verdict.conclusion.value.upper()
    return f"{word} in {seconds(report.duration_s)}: {counts(report)}; {' '.join(verdict.reason.split())}"
