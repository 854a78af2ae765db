"""GPU sampling on a described machine, and its end."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from helpers import machines
from helpers.command import KDOCTOR, environ, kdoctor, make_target
from helpers.marked import left_of

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="NVML and sysfs are Linux'")]

SLOW = "import time\ntime.sleep(100)"
BROKEN = "raise ImportError('libcudart.so.12: cannot open shared object file')"
SLOWLY_BROKEN = f"import time\ntime.sleep(4)\n{BROKEN}"
SAMPLED = {"smoke.gpus-worked", "smoke.gpus-unslowed"}


def judged(report: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    return {one["id"]: (one["status"], one["reason"]) for one in report["results"] if one["id"] in SAMPLED}


def test_gpus_without_finished_training_are_unknown_live_and_from_snapshot(tmp_path: Path) -> None:
    variables = machines.environment("a100-nvlink", tmp_path)
    # NVML has to answer before the import has failed.
    target = make_target(tmp_path / "venv", tensorflow=SLOWLY_BROKEN)
    recorded = tmp_path / "recorded.json"
    options = ("--select", "smoke.gpus-worked", "--select", "smoke.gpus-unslowed", "-f", "json")
    done = kdoctor("check", "--python", target, *options, "--save-snapshot", recorded, variables=variables)
    found = judged(json.loads(done.stdout))
    assert {status for status, _ in found.values()} == {"unknown"}, done.stderr
    assert all(reason for _, reason in found.values())
    facts = json.loads(recorded.read_text())["facts"]["gpu_sampling"]
    assert (facts["state"], len(facts["gpus"])) == ("ready", 4)
    again = kdoctor("check", "--snapshot", recorded, *options)
    assert judged(json.loads(again.stdout)) == found


def test_training_on_cpu_devices_skips_gpu_sampling(tmp_path: Path) -> None:
    variables = machines.environment("a100-nvlink", tmp_path)
    target = make_target(tmp_path / "venv", tensorflow=BROKEN)
    recorded = tmp_path / "recorded.json"
    options = ("--select", "smoke", "--skip", "gpu", "--replicas", "2", "-f", "json", "--save-snapshot", recorded)
    done = kdoctor("check", "--python", target, *options, variables=variables)
    found = judged(json.loads(done.stdout))
    assert {status for status, _ in found.values()} == {"skip"}
    assert all("CPU" in (reason or "") for _, reason in found.values())
    assert json.loads(recorded.read_text())["facts"]["gpu_sampling"]["gpus"] == []


def test_no_smoke_skips_gpu_sampling(tmp_path: Path) -> None:
    done = kdoctor("check", "--no-smoke", "-f", "json", variables=machines.environment("a100-nvlink", tmp_path))
    found = judged(json.loads(done.stdout))
    assert found.keys() == SAMPLED
    assert all(status == "skip" and "--no-smoke" in (reason or "") for status, reason in found.values())


def test_interruption_ends_the_sampling_process(tmp_path: Path) -> None:
    target = make_target(tmp_path / "venv", tensorflow=SLOW)
    variables = {**machines.environment("a100-nvlink", tmp_path), "KDOCTOR_TEST_MARK": str(tmp_path)}
    process = subprocess.Popen(
        [*KDOCTOR, "check", "--select", "smoke", "--python", str(target), "-f", "json"],
        env=environ(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # The tests may have been started with SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    assert _wait_for(lambda: any("sampling_child" in " ".join(_words(one)) for one in left_of(tmp_path, 0)))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["interrupted"] is True
    assert _wait_for(lambda: not left_of(tmp_path, 0))


def _wait_for(condition: Any, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
