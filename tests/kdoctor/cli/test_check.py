"""``kdoctor check`` in broken environments, with wrong options, and interrupted."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from helpers.cases import cases
from helpers.command import KDOCTOR, environ, kdoctor, make_target

SEGFAULT = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"


def report_of(*arguments: str | Path, **changes: str) -> dict[str, Any]:
    """The JSON report, with the exit code that went with it checked."""
    done = kdoctor("check", *arguments, "--format", "json", variables=changes)
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == report["exit_code"], done.stderr
    return report


def result_of(report: dict[str, Any], check_id: str) -> dict[str, Any]:
    return next(result for result in report["results"] if result["id"] == check_id)


def test_missing_tensorflow_fails_and_skips_training(tmp_path: Path) -> None:
    target = make_target(tmp_path / "empty")
    report = report_of("--checklist", "cpu-smoke", "--python", target)
    assert report["verdict"] == "fail"
    assert result_of(report, "versions.tensorflow-installed")["status"] == "fail"
    baseline = result_of(report, "smoke.baseline")
    assert baseline["status"] == "skip"
    assert baseline["blocked_by"] == "versions.tensorflow-installed"
    unknown = {result["id"] for result in report["results"] if result["status"] == "unknown"}
    assert unknown <= {*report["causes"][0]["unjudged"]}


@cases(
    ("raise ImportError('libcudart.so.12: cannot open shared object file')", "libcudart.so.12"),
    (SEGFAULT, "SIGSEGV"),
    ("import os; os._exit(7)", "status 7"),
    ("x = 1", "AttributeError"),
    ids=["raises", "segfaults", "exits", "is empty"],
)
def test_broken_tensorflow_fails_with_its_error(tmp_path: Path, source: str, error: str) -> None:
    target = make_target(tmp_path / "sick", tensorflow=f"print('noise on stdout')\n{source}\n")
    report = report_of("--checklist", "cpu-smoke", "--python", target)
    baseline = result_of(report, "smoke.baseline")
    assert baseline["status"] == "fail"
    assert error in json.dumps(baseline["findings"])


def test_missing_driver_fails_without_cpu_training(tmp_path: Path) -> None:
    target = make_target(tmp_path / "job", tensorflow="")
    report = report_of("--python", target)
    assert report["checklist"]["name"] == "multi-gpu-keras"
    assert report["verdict"] == "fail"
    assert report["exit_code"] == 1
    assert result_of(report, "driver.loaded")["status"] == "fail"
    assert result_of(report, "smoke.baseline")["status"] == "unknown"


def test_unselected_check_is_skipped_with_reason(tmp_path: Path) -> None:
    target = make_target(tmp_path / "job", tensorflow="")
    report = report_of("-c", "cpu-smoke", "--python", target, "--select", "versions.python-supported")
    assert report["verdict"] == "pass"
    unselected = result_of(report, "versions.keras-compatible")
    assert unselected["status"] == "skip"
    assert "--select versions.python-supported" in unselected["reason"]


def test_no_smoke_skips_trainings(tmp_path: Path) -> None:
    target = make_target(tmp_path / "job", tensorflow="")
    report = report_of("-c", "cpu-smoke", "--python", target, "--no-smoke")
    assert "--no-smoke" in result_of(report, "smoke.baseline")["reason"]
    assert result_of(report, "smoke.baseline")["status"] == "skip"


def test_snapshot_gives_verdicts_of_live_run(tmp_path: Path) -> None:
    target = make_target(tmp_path / "job", tensorflow=SEGFAULT)
    record = tmp_path / "record.json"
    live = report_of("-c", "cpu-smoke", "--python", target, "--save-snapshot", record)
    again = report_of("-c", "cpu-smoke", "--snapshot", record)
    assert live["verdict"] == "fail"
    verdicts = [
        [(result["id"], result["status"], len(result["findings"])) for result in report["results"]]
        for report in (live, again)
    ]
    assert verdicts[0] == verdicts[1]


def test_reports_are_written_to_files_and_stdout(tmp_path: Path) -> None:
    target = make_target(tmp_path / "job", tensorflow="")
    files = [tmp_path / "report.xml", tmp_path / "report.md"]
    done = kdoctor(
        "check", "-c", "cpu-smoke", "--no-smoke", "--python", target,
        "-o", f"junit={files[0]}", "-o", f"markdown={files[1]}", "-f", "json",
    )  # fmt: skip
    assert json.loads(done.stdout)["schema"] == "kdoctor/report/v1"
    assert files[0].read_text().startswith("<?xml")
    assert files[1].read_text().startswith("#")
    assert done.stderr.splitlines() == [f"Wrote {path}" for path in files]


def test_report_without_terminal_is_plain_and_80_columns_wide(tmp_path: Path) -> None:
    target = make_target(tmp_path / "e")
    done = kdoctor("check", "-c", "cpu-smoke", "--no-smoke", "--python", target)
    assert "\x1b" not in done.stdout
    prose = [line for line in done.stdout.splitlines() if "/" not in line]
    assert max(map(len, prose)) <= 80


def test_internal_error_exits_with_4(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import kdoctor.catalog.load\n"
        "def broken(*_):\n    raise RuntimeError('a defect')\n"
        "kdoctor.catalog.load.load_catalog = broken\n"
    )
    done = kdoctor("list", PYTHONPATH=str(tmp_path))
    assert done.returncode == 4
    assert "RuntimeError: a defect" in done.stderr
    assert "KDOCTOR_DEBUG=1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interruption_ends_children_and_prints_partial_report(tmp_path: Path, number: signal.Signals) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("nohup ignores the signal, and kdoctor lets it be ignored")
    started = tmp_path / "started"
    source = f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(300)"
    target = make_target(tmp_path / "slow", tensorflow=source)
    command = [*KDOCTOR, "check", "-c", "cpu-smoke", "--python", str(target), "-f", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ()) as process:
        _wait_for(started)
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    report = json.loads(stdout)
    assert process.returncode == report["exit_code"] == 130
    assert report["interrupted"] is True
    assert result_of(report, "versions.tensorflow-installed")["status"] == "pass"
    assert result_of(report, "smoke.baseline")["status"] == "unknown"
    assert "Traceback" not in stderr
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive


def test_timeout_ends_the_run(tmp_path: Path) -> None:
    target = make_target(tmp_path / "slow", tensorflow="import time; time.sleep(300)")
    report = report_of("-c", "cpu-smoke", "--python", target, "--timeout", "3")
    baseline = result_of(report, "smoke.baseline")
    assert baseline["status"] == "unknown"
    assert "3 s" in baseline["reason"]
    assert report["duration_s"] < 50


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)
