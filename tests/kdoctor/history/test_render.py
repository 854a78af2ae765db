"""The history of several runs as text."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from helpers.cases import cases
from helpers.reports import TRAININGS, complete, cpu_report, failure, finding, gpu_report, result
from kdoctor.engine.report import Report, Waiver
from kdoctor.engine.verdict import conclude
from kdoctor.errors import UsageError
from kdoctor.history import read, render
from kdoctor.history.record import keep
from kdoctor.history.store import opened
from kdoctor.model import Evidence, Remedy, Severity, Status


def a_run(*, failed: bool | None, number: int = 0, step_s: float = 0.004) -> Report:
    status = Status.UNKNOWN if failed is None else Status.PASS
    results = (result("gpu.count-expected"), failure("gpu.free") if failed else result("gpu.free", status))
    return cpu_report(
        results=results,
        verdict=conclude(results),
        started_at=f"2030-01-02T00:00:{number:02}+00:00",
        trainings=(replace(TRAININGS[0], step_s=step_s),),
    )


def history(folder: Path, *runs: Report) -> Path:
    place = folder / "history.sqlite"
    for report in runs:
        assert keep(report, "", {"KDOCTOR_HISTORY": str(place)}) is None
    return place


def test_list_marks_first_failure_and_changes(tmp_path: Path) -> None:
    place = history(tmp_path, *(a_run(failed=failed, number=n) for n, failed in enumerate((False, True, True, False))))
    with opened(place, create=False) as connection:
        runs = read.runs(connection, 0, None)
        listed = list(render.list_runs(runs, read.changes(connection, 1)))
    assert [line.partition("cpu-smoke")[2].split("\n        ") for line in listed] == [
        ["\n"],
        ["", "first failure", "gpu.free pass -> fail\n"],
        ["\n"],
        ["", "gpu.free fail -> pass\n"],
    ]
    assert listed[1].split()[:4] == ["2", "2030-01-02T00:00:01", "NOT", "READY"]


def test_list_fits_in_80_columns() -> None:
    names = [f"versions.cuda-libraries-match-{number}" for number in range(9)]
    run = read.Run(
        7, "2030-01-02T00:00:01+00:00", "fail", "pass", 34.2, "multi-gpu-keras", "--select versions --skip host", "node"
    )
    other = run._replace(id=8, target="/home/ada/projects/segmentation/.venv/bin/python")
    changes = {8: [(name, "pass", "unknown") for name in names]}
    text = "".join(render.list_runs([run, other], changes))
    assert max(map(len, text.splitlines())) <= 80
    assert "and 6 more changes" in text
    assert "segmentation/.venv" in text
    recorded = run._replace(id=9, target="recorded in node7.json", scope="--snapshot node7.json")
    assert "".join(render.list_runs([run, recorded], {})).count("node7.json") == 1


def test_too_few_runs_are_no_trend(tmp_path: Path) -> None:
    other = replace(a_run(failed=False), target="/another/python")
    place = history(tmp_path, other, *(a_run(failed=False, number=n, step_s=0.004 * (n + 1)) for n in range(4)))
    with opened(place, create=False) as connection:
        found = read.trends(connection, read.runs(connection, 1, None)[0], 40)
    text = render.list_trends(found, unicode=True)
    assert "5 runs" in text
    assert "are 4 runs like the newest" in " ".join(text.split())
    assert "step" not in text
    assert render.list_trends([], unicode=True) == ""


def test_long_trend_takes_two_lines() -> None:
    trend = read.Trend(name="smoke.uneven-final-batch/drop-remainder step_s", values=(0.001, 0.002) * 20)
    lines = render.list_trends([trend], unicode=True).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("▁" in line for line in lines) == 1


def test_runs_are_limited_and_filtered_by_checklist(tmp_path: Path) -> None:
    place = history(tmp_path, *(a_run(failed=False, number=n) for n in range(4)))
    with opened(place, create=False) as connection:
        assert [run.id for run in read.runs(connection, 2, None)] == [3, 4]
        assert [run.id for run in read.runs(connection, 2, "cpu-smoke")] == [3, 4]
        assert read.runs(connection, 2, "other") == []


@cases(
    ((0, 1), 0),
    ((0, 1, 1, 0), 0),
    ((0, 1, 0, 1), 3),
    ((1, 0, 1, 0, 1, 1), 4),
    ((0, None, 0, None, 0, None, 1), 0),
    ids=["broken", "fixed", "broken again", "flaky", "unknown"],
)
def test_flaky_check_is_listed_with_its_changes(tmp_path: Path, failures: tuple[int | None, ...], flips: int) -> None:
    place = history(
        tmp_path,
        *(a_run(failed=failed if failed is None else bool(failed), number=n) for n, failed in enumerate(failures)),
    )
    with opened(place, create=False) as connection:
        found = read.flaky(connection)
    assert [(item.check, item.flips) for item in found] == ([("gpu.free", flips)] if flips else [])
    assert (f"gpu.free changed {flips} times" in render.list_flaky(found)) == bool(flips)


def test_durations_are_those_of_runs_that_passed(tmp_path: Path) -> None:
    place = history(tmp_path, *(a_run(failed=bool(n % 2), number=n) for n in range(4)))
    with opened(place, create=False) as connection:
        first, *_ = read.runs(connection, 0, None)
        assert len(read.passing_durations(connection, first.host, first.checklist, first.scope)) == 2


def test_trend_has_curve_and_both_ends(tmp_path: Path) -> None:
    place = history(tmp_path, *(a_run(failed=False, number=n, step_s=0.004 * (n + 1)) for n in range(5)))
    with opened(place, create=False) as connection:
        found = read.trends(connection, read.runs(connection, 1, None)[0], 40)
    assert found[0].values == (0.004, 0.008, 0.012, 0.016, 0.02)
    # Eighths of the range: 0, 2, 4, 6 and 8 (at most 7).
    assert render.list_trends(found, unicode=True).splitlines()[-1] == (
        "  ▁▃▅▇█  smoke.baseline/mirrored step: 4 ms -> 20 ms, +400 %"
    )
    assert render.list_trends(found, unicode=False).isascii()


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_sparkline_has_one_mark_per_value(values: list[float]) -> None:
    line = render.sparkline(values, unicode=True)
    assert len(line) == len(values)
    if max(values) > min(values):
        assert line[values.index(max(values))] == "█"
        assert line[values.index(min(values))] == "▁"


def test_diff_shows_checks_findings_and_step_times(tmp_path: Path) -> None:
    place = history(tmp_path, a_run(failed=False), a_run(failed=True, number=1, step_s=0.006))
    with opened(place, create=False) as connection:
        old, new = read.report_of(connection, 1), read.report_of(connection, -1)
    text = render.diff_runs(old, new)
    assert "gpu.free: pass -> fail" in text
    assert "GPU 3 (0000:40:00.0): no finding -> on the PCI bus" in text
    assert "smoke.baseline/mirrored step: 4 ms -> 6 ms (+50 %)" in text
    assert render.diff_runs(new, new).endswith(" UTC)\n  nothing changed\n")
    assert " step: " not in render.diff_runs({**old, "trainings": []}, new)


def test_diff_of_different_selections_counts_checks(tmp_path: Path) -> None:
    with opened(history(tmp_path, a_run(failed=True)), create=False) as connection:
        old = read.report_of(connection, 1)
    new = {**old, "run": 2, "results": [{**old["results"][0], "id": f"gpu.{n}", "status": "skip"} for n in range(40)]}
    text = render.diff_runs(old, new)
    assert "only in run 2: 40 skip" in text
    assert "gpu.7" not in text
    assert "\n    gpu.free: fail\n" in text  # failed checks are named


def test_show_prints_verdict_and_fix(tmp_path: Path, screen: SnapshotAssertion) -> None:
    with opened(history(tmp_path, a_run(failed=True)), create=False) as connection:
        assert render.show_run(read.report_of(connection, 1)) == screen


def test_show_prints_fix_of_several_findings_once(tmp_path: Path) -> None:
    report = cpu_report(results=(failure("gpu.free", finding("GPU 0"), finding("GPU 1")),))
    with opened(history(tmp_path, report), create=False) as connection:
        assert render.show_run(read.report_of(connection, 1)).count("Fix: ") == 1


def test_show_prints_what_to_look_at(tmp_path: Path) -> None:
    remedies = (Remedy.configure("Set these:", look=("export A=1",)), Remedy.configure("Free it.", look=("free -h",)))
    found = (failure(f"gpu.{place}", finding("GPU 0", remedy=one)) for place, one in enumerate(remedies))
    with opened(history(tmp_path, cpu_report(results=tuple(found))), create=False) as connection:
        text = render.show_run(read.report_of(connection, 1))
    assert "    Fix: Set these:\n        export A=1\n" in text
    assert "    Fix: Free it.\n    Look:\n        free -h\n" in text


@cases(
    ("GPU 0: busy with a", "gpu.free"),
    ("GPU 0, GPU 1: busy with a notebook", "gpu.free"),
    ("64 GiB and", "host.memory"),
    ("nothing of the kind", ""),
)
def test_line_of_a_report_is_found_in_the_newest_runs(tmp_path: Path, line: str, check: str) -> None:
    said = Evidence(subject="memory", observed="67 bytes", brief="64 GiB and more")
    results = (
        failure("gpu.free", finding("GPU 0", observed="busy with a notebook")),
        result("host.memory", evidence=(said,)),
    )
    with opened(history(tmp_path, cpu_report(results=results)), create=False) as connection:
        assert read.saying(connection, line) == check


def test_show_begins_with_the_cause_and_says_a_fix_and_a_reason_once(tmp_path: Path) -> None:
    unread = [result(name, Status.UNKNOWN, reason="no facts about gpus were collected") for name in ("gpu.b", "gpu.c")]
    run = complete(gpu_report(), results=(*unread, failure("gpu.a"), failure("gpu.free", severity=Severity.ERROR)))
    (cause,) = run.causes
    run = replace(run, causes=(replace(cause, checks=cause.checks[::-1]),))
    with opened(history(tmp_path, run), create=False) as connection:
        text = render.show_run(read.report_of(connection, 1))
    assert [line for line in text.splitlines() if line.startswith(("FAIL", "UNK"))] == [
        *(f"FAIL  {check}" for check in run.causes[0].checks),
        "UNKNOWN  gpu.b, gpu.c",
    ]
    assert text.count("no facts about gpus") == text.count("Fix: as of") == 1


def test_show_prints_waived_failure_and_policy(tmp_path: Path, screen: SnapshotAssertion) -> None:
    agreed = Waiver(check="gpu.free", subject="*", reason="a notebook", owner="ada", expires=date(2030, 3, 31))
    found = failure("gpu.free").findings
    judged = replace(
        failure("gpu.free"), status=Status.SKIP, findings=tuple(replace(item, waiver=agreed) for item in found)
    )
    run = replace(a_run(failed=False), results=(judged, result("gpu.count-expected")))
    with opened(history(tmp_path, run), create=False) as connection:
        report = read.report_of(connection, 1)
    assert render.show_run(report) == screen
    report["results"][0]["findings"][0]["waiver"]["expired"] = True
    assert "Waived" not in render.show_run(report)


def test_missing_run_names_the_existing_ones(tmp_path: Path) -> None:
    with opened(history(tmp_path, a_run(failed=True)), create=False) as connection:
        for number in (7, 0, -2):
            with pytest.raises(UsageError, match=rf"no run {number} .* 1 to 1"):
                read.report_of(connection, number)
    with opened(tmp_path / "none", create=False) as connection, pytest.raises(UsageError, match="no runs"):
        read.report_of(connection, 1)
