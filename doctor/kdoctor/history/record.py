"""Records a run in the history."""

import platform
from collections.abc import Callable, Mapping

from kdoctor.engine.report import Conclusion, Report
from kdoctor.errors import UsageError
from kdoctor.history.last_passing import keep_lock
from kdoctor.history.location import history_file, runs_to_keep
from kdoctor.history.store import add, opened, pack, prune, writing
from kdoctor.lock.document import Lock
from kdoctor.report.formats import render
from kdoctor.version import __version__


def keep(
    report: Report, scope: str, environ: Mapping[str, str], make_lock: Callable[[], Lock] | None = None
) -> str | None:
    """Record a run. A history that cannot be written does not fail the run.

    Args:
        report: the finished report.
        scope: the options that narrow the run; empty for a whole one.
        environ: names the database and how many runs it keeps.
        make_lock: makes a lock of what the run found. It is called for a whole run that passed.

    Returns:
        Why the run could not be recorded, or None.
    """
    passed = report.verdict.conclusion is Conclusion.PASS
    statuses = {item.id: item.status.value for item in report.results}
    try:
        lock = make_lock() if make_lock and passed and not scope else None
        most = runs_to_keep(environ)
        # Other runs wait for the transaction, so it contains no work that can be done before.
        row, packed, measures = _row(report, scope), pack(render(report, "json")), _measures(report)
        with opened(history_file(environ), create=True) as connection, writing(connection):
            number = add(connection, row, packed, statuses, measures)
            if lock is not None:
                keep_lock(connection, number, lock)
            prune(connection, most)
    except UsageError as error:
        return f"this run is not in the history: {error.message}"
    except Exception as error:  # noqa: BLE001 - no damage to the history may change the exit code of a run
        return f"this run is not in the history: {type(error).__name__}: {error}"
    return None


def _row(report: Report, scope: str) -> dict[str, object]:
    passed, failed, skipped, unknown = report.counts().values()
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
    """The numbers that trends show, with the unit as the last part of the name."""
    found: dict[str, float | None] = {}
    for item in report.trainings:
        name = f"{item.scenario}/{item.case}"
        found[f"{name} step_s"] = item.step_s
        found |= {f"{name} {key}": value for key, value in item.measures.items() if key.endswith(("_s", "_gbs"))}
    for work in report.gpu_work:
        found[f"GPU {work.index} peak temperature_C"] = work.peak_temperature_c
        found[f"GPU {work.index} peak power_W"] = work.peak_power_w
    return {name: value for name, value in found.items() if value is not None}
