"""Locks of passing runs in the history."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.locks import lock
from helpers.reports import cpu_report, gpu_report
from kdoctor.engine.report import Report
from kdoctor.errors import UsageError
from kdoctor.history.last_passing import Series, find_lock, find_start, last_passing, last_target
from kdoctor.history.record import keep
from kdoctor.history.store import STEPS, opened
from kdoctor.lock.document import Lock


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


def kept(place: Path, report: Report, found: Lock | None = None, scope: str = "", **environ: str) -> None:
    make_lock = (lambda: found) if found else None
    assert keep(report, scope, {"KDOCTOR_HISTORY": str(place), **environ}, make_lock) is None


def series(place: Path) -> Series:
    with closing(sqlite3.connect(place)) as connection:
        row = connection.execute("SELECT host, checklist, target FROM runs WHERE checklist = 'cpu-smoke'").fetchone()
    return Series(host=row[0], checklist=row[1], target=row[2])


def last(place: Path, wanted: Series) -> tuple[str, Lock]:
    with opened(place, create=False) as connection:
        return last_passing(connection, wanted, "-c x")


def why_none(place: Path, wanted: Series) -> str:
    with pytest.raises(UsageError) as caught:
        last(place, wanted)
    assert find_lock({"KDOCTOR_HISTORY": str(place)}, wanted) == (None, "")
    return caught.value.message


def count(place: Path, table: str) -> int:
    with closing(sqlite3.connect(place)) as connection:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608 - our own names


def at(moment: str) -> Report:
    return replace(cpu_report(), started_at=moment)


def test_equal_locks_are_stored_once_and_pruned_with_their_last_run(place: Path) -> None:
    other = lock().model_copy(update={"facts": {**lock().facts, "packages": {"keras": "3.14.0"}}})
    kept(place, cpu_report(), other)
    for measured in (0.1, 0.2, 0.3):
        noise = {name: item.model_copy(update={"value": measured}) for name, item in lock().measured.items()}
        kept(place, cpu_report(), lock().model_copy(update={"measured": noise}))
    assert (count(place, "green"), count(place, "locks")) == (4, 2)
    kept(place, cpu_report(), lock(), KDOCTOR_HISTORY_KEEP="2")
    assert (count(place, "runs"), count(place, "green"), count(place, "locks")) == (2, 2, 1)


def test_interpreter_of_the_last_passing_run_is_known(place: Path) -> None:
    kept(place, replace(cpu_report(), target="/opt/a/bin/python (Python 3.11.7)"))
    kept(place, replace(gpu_report(), target="/opt/b/bin/python (Python 3.11.7)"))
    environ = {"KDOCTOR_HISTORY": str(place)}
    assert (last_target(environ, "cpu-smoke"), last_target(environ, "other")) == ("/opt/a/bin/python", "")


def test_failed_and_narrowed_runs_store_no_lock(place: Path) -> None:
    kept(place, gpu_report(), lock())
    kept(place, cpu_report(), lock(), scope="--no-smoke")
    assert count(place, "green") == 0
    reason = why_none(place, series(place))
    assert "cpu-smoke (2)" in reason
    assert "--no-smoke" in reason


@cases(("/opt/job/bin/python", "--gpus 0"), ("/elsewhere/python", "--no-smoke --gpus 0"))
def test_no_lock_is_recorded_for_another_number_of_gpus(place: Path, target: str, scope: str) -> None:
    kept(place, replace(cpu_report(), target="/opt/job/bin/python (Python 3.11.7)"), scope=scope)
    with pytest.raises(UsageError) as caught:
        last(place, replace(series(place), target=target))
    assert "checklist record" not in str(caught.value.hint)


@cases(("/opt/job/bin/python", "--no-smoke"), ("/else where/python", "--select gpu"))
def test_nothing_is_recorded_after_a_narrowed_run(place: Path, target: str, scope: str) -> None:
    kept(place, replace(cpu_report(), target="/opt/job/bin/python (Python 3.11.7)"), scope=scope)
    with pytest.raises(UsageError) as caught:
        last(place, replace(series(place), target=target))
    assert str(caught.value.hint).endswith("kdoctor check -c x")
    assert ("fails" in str(caught.value.hint)) == (target != "/opt/job/bin/python"), "that run passed"


def test_missing_lock_names_the_closest_run(place: Path) -> None:
    wanted = Series(host="node7", checklist="cpu-smoke", target="/opt/job/bin/python")
    assert "no run of cpu-smoke" in why_none(place, wanted)
    assert not place.exists()
    kept(place, gpu_report())
    kept(place, gpu_report(), scope="--snapshot node9.json")  # of another machine
    with closing(sqlite3.connect(place)) as connection:
        host, checklist, target = connection.execute("SELECT host, checklist, target FROM runs").fetchone()
    assert "1 run of multi-gpu-keras" in why_none(place, Series(host=host, checklist=checklist, target=target))
    kept(place, cpu_report(), lock())
    mine = series(place)
    reason = why_none(place, replace(mine, target="/elsewhere/python"))
    assert f"cpu-smoke (3) examined {mine.target}, not /elsewhere/python" in reason


@cases(("cpu-smoke", "kdoctor rollback --checklist cpu-smoke --to last-passing"), ("node", "kdoctor check -c x"))
def test_missing_lock_restores_a_shipped_checklist_that_passed(place: Path, shipped: str, command: str) -> None:
    kept(place, cpu_report(), lock())
    wanted = replace(series(place), checklist="node")
    with pytest.raises(UsageError) as caught, opened(place, create=False) as connection:
        last_passing(connection, wanted, "-c x", [shipped])
    assert str(caught.value.hint).endswith(f": {command}")


def test_passing_run_of_older_version_has_no_lock(place: Path) -> None:
    with closing(sqlite3.connect(place)) as connection:
        for step in STEPS[:2]:
            connection.executescript(step)
        connection.execute("PRAGMA user_version = 2")
        connection.execute(
            "INSERT INTO runs (started_at, duration_s, host, checklist, checklist_version, target, scope, kdoctor, "
            "conclusion, exit_code, reason, passed, failed, skipped, unknown) VALUES ('2026-01-01T06:00:00+00:00', 1, "
            "'node7', 'job', 1, '/opt/job/bin/python', '', '0.0.9', 'pass', 0, '', 1, 0, 0, 0)"
        )
        connection.commit()
    wanted = Series(host="node7", checklist="job", target="/opt/job/bin/python")
    assert "job (1, 2026-01-01T06:00:00+00:00)" in why_none(place, wanted)
    assert count(place, "runs") == 1


def test_damaged_lock_names_its_run(place: Path) -> None:
    kept(place, cpu_report(), lock())
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("UPDATE locks SET lock = x'00'")
        connection.commit()
    assert why_none(place, series(place)).startswith("run 1 of the history")


def test_last_passing_start_is_found_by_series_and_scope(place: Path) -> None:
    kept(place, at("2030-01-01T00:00:00+00:00"))
    kept(place, gpu_report(started_at="2030-01-02T00:00:00+00:00"))
    kept(place, replace(at("2030-01-03T00:00:00+00:00"), verdict=gpu_report().verdict))  # it failed
    wanted, environ = series(place), {"KDOCTOR_HISTORY": str(place)}
    assert find_start(environ, wanted, "") == "2030-01-01T00:00:00+00:00"
    assert find_start(environ, wanted, "--no-smoke") == ""
    assert find_start(environ, replace(wanted, checklist="multi-gpu-keras"), "") == ""
    place.write_text("not a database" * 100)
    assert find_start(environ, wanted, "") == ""
