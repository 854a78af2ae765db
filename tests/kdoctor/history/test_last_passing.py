"""The way back from the history alone: what green runs found is kept with them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.locks import lock
from helpers.reports import cpu_report, gpu_report
from kdoctor.engine.report import Report
from kdoctor.errors import UsageError
from kdoctor.history.last_passing import Series, last_green
from kdoctor.history.record import keep
from kdoctor.history.store import STEPS, opened
from kdoctor.lock.document import Lock


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


def kept(place: Path, report: Report, found: Lock | None = None, scope: str = "", **environ: str) -> None:
    made = (lambda: found) if found else None
    _, note = keep(report, scope, {"KDOCTOR_HISTORY": str(place), **environ}, made)
    assert note is None


def series(place: Path) -> Series:
    with closing(sqlite3.connect(place)) as connection:
        row = connection.execute("SELECT host, checklist, target FROM runs WHERE checklist = 'cpu-smoke'").fetchone()
    return Series(host=row[0], checklist=row[1], target=row[2])


def told(place: Path, wanted: Series) -> tuple[str, Lock]:
    with opened(place, create=False) as connection:
        return last_green(connection, wanted)


def why_not(place: Path, wanted: Series) -> str:
    with pytest.raises(UsageError) as caught:
        told(place, wanted)
    return caught.value.message


def count(place: Path, table: str) -> int:
    with closing(sqlite3.connect(place)) as connection:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608 - our own names


def at(moment: str) -> Report:
    return replace(cpu_report(), started_at=moment)


def test_the_last_green_run_can_be_gone_back_to(place: Path) -> None:
    older = lock().model_copy(update={"facts": {**lock().facts, "packages": {"keras": "3.14.0"}}})
    kept(place, at("2026-04-01T06:00:00+00:00"), older)
    kept(place, at("2026-05-01T06:00:00+00:00"), lock())
    kept(place, gpu_report(), lock())
    name, found = told(place, series(place))
    assert name == "run 2 of the history"
    assert (found.recorded, found.facts, found.expectations) == (
        "2026-05-01T06:00:00+00:00", lock().facts, lock().expectations,
    )  # fmt: skip


def test_equal_findings_take_the_place_of_one_and_go_with_the_last_run_that_has_them(place: Path) -> None:
    other = lock().model_copy(update={"facts": {**lock().facts, "packages": {"keras": "3.14.0"}}})
    kept(place, cpu_report(), other)
    for measured in (0.1, 0.2, 0.3):
        noise = {name: item.model_copy(update={"value": measured}) for name, item in lock().measured.items()}
        kept(place, cpu_report(), lock().model_copy(update={"measured": noise}))
    assert (count(place, "green"), count(place, "locks")) == (4, 2)
    kept(place, cpu_report(), lock(), KDOCTOR_HISTORY_KEEP="2")
    assert (count(place, "runs"), count(place, "green"), count(place, "locks")) == (2, 2, 1)


def test_red_and_narrowed_runs_are_no_state_to_go_back_to(place: Path) -> None:
    kept(place, gpu_report(), lock())
    kept(place, cpu_report(), lock(), scope="--no-smoke")
    assert count(place, "green") == 0
    assert why_not(place, series(place)) == (
        "the last green run of cpu-smoke (2) was narrowed (--no-smoke), and shows less than a whole one"
    )


def test_why_there_is_none_is_told(place: Path) -> None:
    wanted = Series(host="node7", checklist="cpu-smoke", target="/opt/job/bin/python")
    assert why_not(place, wanted) == "no run of cpu-smoke on this host is in the history, so no green one is known"
    assert not place.exists()
    kept(place, gpu_report())
    with closing(sqlite3.connect(place)) as connection:
        host, checklist, target = connection.execute("SELECT host, checklist, target FROM runs").fetchone()
    assert why_not(place, Series(host=host, checklist=checklist, target=target)) == (
        "none of the 1 runs of multi-gpu-keras on this host was green"
    )
    kept(place, cpu_report(), lock())
    mine = series(place)
    assert why_not(place, replace(mine, target="/elsewhere/python")) == (
        f"the last green run of cpu-smoke (2) examined {mine.target}, and not /elsewhere/python: see --python"
    )


def test_a_green_run_of_an_older_kdoctor_says_what_it_lacks(place: Path) -> None:
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
    assert why_not(place, wanted) == (
        "the last green run of job (1, 2026-01-01T06:00:00+00:00) was kept by an older kdoctor, without what a way "
        "back needs; the next green run will have it"
    )
    assert count(place, "runs") == 1


def test_what_was_damaged_is_told(place: Path) -> None:
    kept(place, cpu_report(), lock())
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("UPDATE locks SET lock = x'00'")
        connection.commit()
    assert why_not(place, series(place)).startswith("run 1 of the history is damaged: ")
