"""``kdoctor history`` after real runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.command import KDOCTOR, environ, kdoctor, make_target

Run = Callable[..., subprocess.CompletedProcess[str]]
QUICK = ("check", "--checklist", "cpu-smoke", "--no-smoke", "--quiet")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``kdoctor`` with a state folder of the test's own."""

    def call(*arguments: str | Path, off: str = "0") -> subprocess.CompletedProcess[str]:
        return kdoctor(*arguments, KDOCTOR_NO_HISTORY=off, XDG_STATE_HOME=str(tmp_path / "state"))

    return call


def test_a_target_that_breaks_is_the_first_red_after_green(tmp_path: Path, run: Run) -> None:
    target = make_target(tmp_path / "job", tensorflow="")
    asked = (*QUICK, "--select", "versions.tensorflow-installed", "--python", target)
    assert run(*asked).returncode == 0
    for part in target.glob("lib/python*/site-packages/tensorflow*"):
        shutil.rmtree(part)
    broken = run(*asked)
    assert broken.returncode == 1, broken.stdout
    lines = run("history").stdout.splitlines()
    assert "PASS" in lines[0]
    assert "FAIL" in lines[1]
    assert "first red; " in lines[1]
    assert "pass -> fail" in run("history", "diff", "-2", "-1").stdout
    assert run("history", "show", "-1").stdout.startswith("Run 2: FAIL")
    exported = [json.loads(line) for line in run("history", "export").stdout.splitlines()]
    assert [(line["run"], line["schema"], line["verdict"]) for line in exported] == [
        (1, "kdoctor/report/v1", "pass"),
        (2, "kdoctor/report/v1", "fail"),
    ]


def test_nothing_is_kept_where_nobody_wants_it(tmp_path: Path, run: Run) -> None:
    run(*QUICK, "--no-history")
    run(*QUICK, off="1")
    assert not (tmp_path / "state").exists()
    done = run("history")
    assert (done.returncode, done.stdout) == (0, "")
    assert "there are no runs in the history yet" in done.stderr


def test_a_history_that_cannot_be_written_fails_no_check(tmp_path: Path, run: Run) -> None:
    (tmp_path / "state").write_text("a file, where a folder should be")
    done = run(*QUICK)
    assert done.returncode == 0
    assert done.stderr.startswith("kdoctor: this run is not in the history: ")
    assert "Traceback" not in done.stderr


def test_a_number_that_is_none(run: Run) -> None:
    done = run("history", "--last", "many")
    assert (done.returncode, "no number of runs" in done.stderr) == (2, True)


def test_a_reader_that_goes_away_is_no_trouble(tmp_path: Path, run: Run) -> None:
    run(*QUICK)
    away = environ(XDG_STATE_HOME=str(tmp_path / "state"))
    command = " ".join([*KDOCTOR, "history", "export", "|", "true"])
    done = subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True, env=away, timeout=60)
    assert not done.stderr
