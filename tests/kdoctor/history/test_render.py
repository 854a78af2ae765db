"""What the history says of a sequence of runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.reports import TRAININGS, cpu_report, failure, result
from kdoctor.engine.judge import conclude
from kdoctor.engine.report import Report, Waiver
from kdoctor.errors import UsageError
from kdoctor.history import read
from kdoctor.history import render as words
from kdoctor.history.record import keep
from kdoctor.history.store import opened
from kdoctor.model import Status


def a_run(*, red: bool, number: int = 0, step_s: float = 0.004) -> Report:
    results = (result("gpu.count-expected"), failure("gpu.free") if red else result("gpu.free"))
    return cpu_report(
        results=results,
        verdict=conclude(results),
        started_at=f"2030-01-02T00:00:{number:02}+00:00",
        trainings=(replace(TRAININGS[0], step_s=step_s),),
    )


def history(folder: Path, *runs: Report) -> Path:
    place = folder / "history.sqlite"
    for report in runs:
        assert keep(report, "", {"KDOCTOR_HISTORY": str(place)})[1] is None
    return place


def test_the_first_red_after_green_and_what_changed(tmp_path: Path) -> None:
    place = history(tmp_path, *(a_run(red=red, number=n) for n, red in enumerate((False, True, True, False))))
    with opened(place, create=False) as connection:
        runs = read.runs(connection, 0, None)
        listed = list(words.list_runs(runs, read.changes(connection, 1)))
    assert [line.partition("cpu-smoke")[2].strip() for line in listed] == [
        "",
        "first red; gpu.free pass -> fail",
        "",
        "gpu.free fail -> pass",
    ]
    assert listed[1].split()[:3] == ["2", "2030-01-02T00:00:01", "FAIL"]


def test_a_first_red_by_a_check_that_was_not_there_before_is_told() -> None:
    run = read.Run(7, "2030-01-02T00:00:01+00:00", "fail", "pass", 34.2, "cpu-smoke", "--no-smoke")
    (line,) = words.list_runs([run], {})
    assert line == "     7  2030-01-02T00:00:01  FAIL       34.2 s  cpu-smoke --no-smoke  first red\n"


def test_the_newest_runs_and_those_of_one_checklist(tmp_path: Path) -> None:
    place = history(tmp_path, *(a_run(red=False, number=n) for n in range(4)))
    with opened(place, create=False) as connection:
        assert [run.id for run in read.runs(connection, 2, None)] == [3, 4]
        assert [run.id for run in read.runs(connection, 2, "cpu-smoke")] == [3, 4]
        assert read.runs(connection, 2, "other") == []


@pytest.mark.parametrize(
    ("reds", "flips"),
    [((0, 1), 0), ((0, 1, 1, 0), 0), ((0, 1, 0, 1), 3), ((1, 0, 1, 0, 1, 1), 4)],
    ids=["broken", "broken and mended", "and broken again", "to and fro"],
)
def test_a_check_that_goes_to_and_fro_is_flaky(tmp_path: Path, reds: tuple[int, ...], flips: int) -> None:
    place = history(tmp_path, *(a_run(red=bool(red), number=n) for n, red in enumerate(reds)))
    with opened(place, create=False) as connection:
        found = read.flaky(connection)
    assert [(item.check, item.flips) for item in found] == ([("gpu.free", flips)] if flips else [])
    assert (f"gpu.free changed {flips} times" in words.list_flaky(found)) == bool(flips)


def test_trends_have_a_curve_and_both_ends(tmp_path: Path) -> None:
    place = history(tmp_path, *(a_run(red=False, number=n, step_s=0.004 * (n + 1)) for n in range(4)))
    with opened(place, create=False) as connection:
        found = read.trends(connection, read.runs(connection, 1, None)[0], 40)
    assert found[0].values == (0.004, 0.008, 0.012, 0.016)
    # Thirds of the way from the least to the greatest: 0, 8/3, 16/3 and 8 (7 at most).
    assert words.list_trends(found, unicode=True).splitlines()[-1] == (
        "  ▁▃▆█  smoke.baseline/mirrored step: 4 ms -> 16 ms, +300 %"
    )
    assert words.list_trends(found, unicode=False).isascii()


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_a_sparkline_has_a_mark_for_each_value(values: list[float]) -> None:
    line = words.sparkline(values, unicode=True)
    assert len(line) == len(values)
    if max(values) > min(values):
        assert line[values.index(max(values))] == "█"
        assert line[values.index(min(values))] == "▁"


def test_two_runs_are_compared(tmp_path: Path) -> None:
    place = history(tmp_path, a_run(red=False), a_run(red=True, number=1, step_s=0.006))
    with opened(place, create=False) as connection:
        old, new = read.report_of(connection, 1), read.report_of(connection, -1)
    text = words.diff_runs(old, new)
    assert "gpu.free: pass -> fail" in text
    assert "GPU 3 (0000:40:00.0): no finding -> on the PCI bus" in text
    assert "smoke.baseline/mirrored step: 4 ms -> 6 ms (+50 %)" in text
    assert "nothing changed" in words.diff_runs(new, new)


def test_runs_that_asked_different_checks_are_compared_without_a_line_for_each(tmp_path: Path) -> None:
    with opened(history(tmp_path, a_run(red=True)), create=False) as connection:
        old = read.report_of(connection, 1)
    new = {**old, "run": 2, "results": [{**old["results"][0], "id": f"gpu.{n}", "status": "skip"} for n in range(40)]}
    text = words.diff_runs(old, new)
    assert "only in run 2: 40 skip" in text
    assert "gpu.7" not in text
    assert "\n    gpu.free: fail\n" in text  # of those that only run 1 asked, the red one is named


def test_a_run_is_shown_with_what_mends_it(tmp_path: Path) -> None:
    with opened(history(tmp_path, a_run(red=True)), create=False) as connection:
        text = words.show_run(read.report_of(connection, 1))
    assert text.startswith("Run 1: FAIL (gpu.free failed)\n")
    assert "      sudo systemctl reboot\n" in text


def test_a_waived_failure_stays_visible_and_so_does_the_decision(tmp_path: Path) -> None:
    agreed = Waiver(check="gpu.free", subject="*", reason="a notebook", owner="ada", expires=date(2030, 3, 31))
    found = failure("gpu.free").findings
    judged = replace(
        failure("gpu.free"), status=Status.SKIP, findings=tuple(replace(item, waiver=agreed) for item in found)
    )
    run = replace(a_run(red=False), results=(judged, result("gpu.count-expected")))
    with opened(history(tmp_path, run), create=False) as connection:
        text = words.show_run(read.report_of(connection, 1))
    assert "WAIVED  gpu.free (error): " in text
    assert "    until 2030-03-31, by ada: a notebook\n" in text
    assert "Fix:" not in text
    assert text.endswith("Decided in advance\n  Fix forward: smoke.starved-replica\n")


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    with opened(history(tmp_path, a_run(red=True)), create=False) as connection:
        for number in (7, 0, -2):
            with pytest.raises(UsageError, match=f"no run {number} in the history: there are 1 to 1"):
                read.report_of(connection, number)
    with opened(tmp_path / "none", create=False) as connection, pytest.raises(UsageError, match="none yet"):
        read.report_of(connection, 1)
