"""Time grows with the size, not with its square: twice the size takes less than three times as long."""

import gc
import json
import os
import random
import sqlite3
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from helpers.command import KDOCTOR, environ, kdoctor
from helpers.evidence.comparing import evaluate
from helpers.evidence.machines import STATED
from helpers.faults.interpreters import ENVIRONMENT, end_at_once, slow_import
from helpers.faults.private_memory import PrivateMemory, private_memory
from helpers.faults.running import MARK, QUICK, marked
from helpers.large import Shape, machine, report
from kdoctor.catalog.load import load_catalog
from kdoctor.facts import Gpus
from kdoctor.facts.plausible import LARGEST_MACHINE, plausible
from kdoctor.model import Status
from kdoctor.report.formats import FORMATS, render
from kdoctor.snapshot.document import Snapshot, dumps, loads
from kdoctor.text.canvas import PLAIN

LINEAR = 3.0
"""The square would be four times as long."""
KILLS = int(os.environ.get("KDOCTOR_KILLS", "20"))
LATEST_S = 2.0


def seconds(work: Callable[[], object]) -> float:
    """The least CPU time of two runs: other programs and the garbage of earlier tests only add to it."""
    found = []
    for _ in range(2):
        gc.collect()
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def test_gpus_beyond_the_largest_machine_are_counted_and_not_judged() -> None:
    found = plausible(machine(1000)[Gpus])
    assert isinstance(found, Gpus)
    assert (found.count, len(found.devices)) == (1000, LARGEST_MACHINE)
    results = evaluate({**machine(1000), Gpus: found}, STATED, {Gpus})
    assert results["gpu.responding"].status is Status.UNKNOWN
    assert "1000" in (results["gpu.responding"].reason or "")


@pytest.mark.faults
def test_snapshot_is_read_in_linear_time() -> None:
    groups = load_catalog().fact_groups
    small, large = (dumps(Snapshot.now(machine(count))) for count in (150, 300))
    ratio = seconds(lambda: loads(large, groups)) / seconds(lambda: loads(small, groups))
    assert ratio < LINEAR


@pytest.mark.faults
@pytest.mark.parametrize("format", FORMATS)
def test_report_is_rendered_in_linear_time(format: str) -> None:  # noqa: A002 - the option's name
    small, large = report(1000, "different"), report(2000, "different")
    ratio = seconds(lambda: render(large, format, PLAIN)) / max(seconds(lambda: render(small, format, PLAIN)), 0.02)
    assert ratio < LINEAR


@pytest.mark.faults
def test_snapshot_of_10000_gpus_is_judged(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    file.write_text(dumps(Snapshot.now(machine(10_000))), encoding="utf-8")
    done = kdoctor("check", "--snapshot", file, "--format", "json", timeout_s=600)
    assert done.returncode == 1
    found = {result["id"]: result["status"] for result in json.loads(done.stdout)["results"]}
    assert found["gpu.responding"] == "unknown"


@pytest.mark.faults
def test_snapshots_of_5000_and_10000_gpus_are_judged_in_linear_time(tmp_path: Path) -> None:
    groups = load_catalog().fact_groups
    file = tmp_path / "large.json"
    found = []
    for count in (5_000, 10_000):
        file.write_text(dumps(Snapshot.now(machine(count))), encoding="utf-8")
        started = time.process_time()
        facts = loads(file.read_bytes(), groups).facts
        evaluate(dict(facts), STATED, {Gpus})
        dumps(Snapshot.now(facts))
        found.append(time.process_time() - started)
    assert found[1] / found[0] < LINEAR


@pytest.mark.faults
@pytest.mark.parametrize("shape", get_args(Shape))
def test_reports_of_50000_and_100000_findings_are_written_in_linear_time(shape: Shape) -> None:
    times = [seconds(lambda: report(number, shape)) for number in (50_000, 100_000)]  # noqa: B023 - called at once
    assert times[1] / max(times[0], 0.1) < LINEAR, times
    small, large = report(50_000, shape), report(100_000, shape)
    for name in FORMATS:
        times = []
        for shown in (small, large):
            gc.collect()
            started = time.process_time()
            assert render(shown, name, replace(PLAIN, verbosity=2))
            times.append(time.process_time() - started)
        assert times[1] / max(times[0], 0.1) < LINEAR, (name, times)


@pytest.mark.faults
def test_50_runs_at_once_lose_none(tmp_path: Path) -> None:
    history = tmp_path / "history.db"
    variables = {**environ(), "KDOCTOR_HISTORY": str(history)}
    variables.pop("KDOCTOR_NO_HISTORY")
    runs = [
        subprocess.Popen([*KDOCTOR, *QUICK, "--quiet"], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(50)
    ]
    ends = [(run.communicate(), run.returncode) for run in runs]
    assert {(err, code) for (_, err), code in ends} == {(b"", 0)}
    listed = kdoctor("history", "export", KDOCTOR_HISTORY=str(history), KDOCTOR_NO_HISTORY="").stdout
    assert len(listed.splitlines()) == 50


@pytest.mark.faults
def test_killed_runs_leave_nothing(tmp_path: Path) -> None:
    """Every other one is killed in its trainings, if it gets that far. ``KDOCTOR_KILLS`` sets their number."""
    mark, temporary, history = uuid.uuid4().hex, tmp_path / "tmp", tmp_path / "history.db"
    temporary.mkdir()
    slow_import(tmp_path)
    changed = {"TMPDIR": str(temporary), "KDOCTOR_HISTORY": str(history), "KDOCTOR_NO_HISTORY": "", MARK: mark}
    trainings = [item.replace("{folder}", str(tmp_path)) for item in ENVIRONMENT]
    with private_memory(tmp_path) as memory:
        _start_and_kill(trainings, environ(**changed), memory)
        end_at_once(tmp_path)
        assert kdoctor(*trainings, variables=changed).returncode == 1
        assert list(temporary.iterdir()) == []
        assert marked(mark) == ()
        assert memory is None or memory.files() == []
    with sqlite3.connect(history) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".kdoctor")] == []


def _start_and_kill(trainings: Sequence[str], variables: Mapping[str, str], memory: PrivateMemory | None) -> None:
    moments = random.Random(16)
    for number in range(KILLS):
        with subprocess.Popen(
            [*KDOCTOR, *(trainings if number % 2 else QUICK)],
            env=variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=memory.enter if memory else None,  # noqa: PLW1509 - this process has no other threads
        ) as run:
            time.sleep(moments.uniform(0, LATEST_S))
            run.kill()
