"""``kdoctor history`` after real runs."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.checklist_texts import untrained
from helpers.command import KDOCTOR, environ, kdoctor, make_target

Run = Callable[..., subprocess.CompletedProcess[str]]
QUICK = ("check", "--checklist", "cpu-smoke", "--no-smoke", "--quiet")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``kdoctor`` with its own state folder."""

    def call(*arguments: str | Path, off: str = "0") -> subprocess.CompletedProcess[str]:
        return kdoctor(*arguments, KDOCTOR_NO_HISTORY=off, XDG_STATE_HOME=str(tmp_path / "state"))

    return call


def test_broken_target_is_the_first_failure(tmp_path: Path, run: Run) -> None:
    target = make_target(tmp_path / "job", tensorflow="")
    asked = (*QUICK, "--select", "versions.tensorflow-installed", "--python", target)
    assert run(*asked).returncode == 0
    for part in target.glob("lib/python*/site-packages/tensorflow*"):
        shutil.rmtree(part)
    broken = run(*asked)
    assert broken.returncode == 1, broken.stdout
    one, other = run("history").stdout.split("\n     2  ")
    assert "READY" in one
    assert "NOT READY" in other
    assert "first failure\n" in other
    assert "pass -> fail" in run("history", "diff", "-2", "-1").stdout
    assert run("history", "show", "-1").stdout.startswith("Run 2: NOT READY")
    exported = [json.loads(line) for line in run("history", "export").stdout.splitlines()]
    assert [(line["run"], line["schema"], line["verdict"]) for line in exported] == [
        (1, "kdoctor/report/v1", "pass"),
        (2, "kdoctor/report/v1", "fail"),
    ]


def test_kept_diagnoses_are_listed_with_the_run_before_them(tmp_path: Path, run: Run) -> None:
    log = tmp_path / "train.log"
    log.write_text("bind: Address already in use\n")
    assert run("diagnose", "--keep", log).returncode == 0
    assert "port_in_use" in run("history").stdout
    run(*QUICK, "--select", "host.disk")
    log.write_text("Bus error (core dumped)\n")
    assert run("diagnose", "--keep", log).returncode == 1
    listed = run("history").stdout
    assert listed.index("port_in_use") < listed.index("     1  ") < listed.index("bus_error")


@pytest.mark.parametrize(("tensorflow", "verdict"), [("", "pass"), (None, "fail")])
def test_run_of_record_is_kept_whether_it_passed_or_not(
    tmp_path: Path, run: Run, tensorflow: str | None, verdict: str
) -> None:
    (tmp_path / "job.yaml").write_text(untrained("versions.tensorflow-installed"))
    target = make_target(tmp_path / "job", tensorflow=tensorflow)
    record = ("checklist", "record", tmp_path / "job.yaml", "--python", target)
    assert run(*record, "--no-history").returncode == (verdict == "fail")
    assert not (tmp_path / "state").exists()
    assert run(*record).returncode == (verdict == "fail")
    (line,) = [json.loads(line) for line in run("history", "export").stdout.splitlines()]
    assert (line["checklist"]["name"], line["scope"], line["verdict"]) == ("job", "", verdict)


def test_history_can_be_turned_off(tmp_path: Path, run: Run) -> None:
    run(*QUICK, "--no-history")
    run(*QUICK, off="1")
    assert not (tmp_path / "state").exists()
    done = run("history")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.count("\n") == 1


def test_unwritable_history_does_not_fail_the_run(tmp_path: Path, run: Run) -> None:
    (tmp_path / "state").write_text("a file, where a folder should be")
    done = run(*QUICK)
    assert done.returncode == 0
    assert str(tmp_path / "state") in done.stderr
    assert "Traceback" not in done.stderr


def test_newest_runs_are_the_default(run: Run) -> None:
    for _ in range(2):
        run(*QUICK)
    for command, runs in {"show": ["-1"], "diff": ["-2", "-1"]}.items():
        done = run("history", command)
        assert (done.returncode, done.stdout) == (0, run("history", command, *runs).stdout)


def test_closed_pipe_is_silent(tmp_path: Path, run: Run) -> None:
    run(*QUICK)
    away = environ(XDG_STATE_HOME=str(tmp_path / "state"))
    command = " ".join([*KDOCTOR, "history", "export", "|", "true"])
    done = subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True, env=away, timeout=60)
    assert not done.stderr
