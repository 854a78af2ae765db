"""From a report to a kept run. A history that cannot be written is a note, never a failed check."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from kdoctor import __version__
from kdoctor.engine.report import Conclusion, Report
from kdoctor.errors import UsageError
from kdoctor.history.last_passing import keep_green
from kdoctor.history.location import history_file, runs_to_keep
from kdoctor.history.packed import packed
from kdoctor.history.store import add, opened, prune, series_of, writing
from kdoctor.lock.document import Lock
from kdoctor.report.formats import render


def keep(
    report: Report, scope: str, environ: Mapping[str, str], found: Callable[[], Lock] | None = None
) -> tuple[Report, str | None]:
    """Keep the run, and tell the report when the last green one of its series was.

    Args:
        report: what was found.
        scope: the options that narrow a run, so that only runs of one kind are compared; empty for a whole one.
        environ: names the file, and how many runs to keep.
        found: makes a lock of what the run found; asked for a green and whole run, for the way back.

    Returns:
        The report with ``last_green_at``, and a note where the run could not be kept.
    """
    green = _green(report)
    try:
        lock = found() if found and not scope and _passed(report) else None
        return _keep(green, scope, (history_file(environ), runs_to_keep(environ)), lock), None
    except UsageError as error:
        return green, f"this run is not in the history: {error.message}"


def _green(report: Report) -> Report:
    return replace(report, last_green_at=report.started_at) if _passed(report) else report


def _passed(report: Report) -> bool:
    return report.verdict.conclusion is Conclusion.PASS


def _keep(report: Report, scope: str, where: tuple[Path, int], lock: Lock | None) -> Report:
    run = _row(report, scope)
    place, most = where
    with opened(place, create=True) as connection, writing(connection):
        if not report.last_green_at:
            row = connection.execute(
                "SELECT started_at FROM runs WHERE host = ? AND checklist = ? AND target = ? AND scope = ? "
                "AND conclusion = 'pass' ORDER BY id DESC LIMIT 1",
                series_of(run),
            ).fetchone()
            report = replace(report, last_green_at=row[0]) if row else report
        statuses = {item.id: item.status.value for item in report.results}
        number = add(connection, run, packed(render(report, "json")), statuses, _measures(report))
        if lock is not None:
            keep_green(connection, number, lock)
        prune(connection, most)
    return report


def _row(report: Report, scope: str) -> dict[str, object]:
    counts = report.counts()
    passed, failed, skipped, unknown = counts.values()
    return {
        "started_at": report.started_at,
        "duration_s": report.duration_s,
        "host": platform.node(),
        "checklist": report.checklist.name,
        "checklist_version": report.checklist.version,
        "target": report.target.partition(" (")[0],
        "scope": scope,
        "kdoctor": __version__,
        "conclusion": report.verdict.conclusion.value,
        "exit_code": report.verdict.exit_code,
        "reason": report.verdict.reason,
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "unknown": unknown,
    }


def _measures(report: Report) -> dict[str, float]:
    """What trends are drawn of, with the unit in the name."""
    found: dict[str, float | None] = {}
    for item in report.trainings:
        name = f"{item.scenario}/{item.case}"
        found[f"{name} step_s"] = item.step_s
        found |= {f"{name} {key}": value for key, value in item.measures.items() if key.endswith(("_s", "_gbs"))}
    for work in report.gpu_work:
        # The name's last word is the unit (kdoctor.history.render).
        found[f"GPU {work.index} peak temperature_C"] = work.peak_temperature_c
        found[f"GPU {work.index} peak power_W"] = work.peak_power_w
    return {name: value for name, value in found.items() if value is not None}
