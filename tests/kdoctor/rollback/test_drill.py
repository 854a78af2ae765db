"""The drill: a passing environment gets a Keras that trains incorrectly, fails, is rolled back, and passes again.

It installs packages from the index into temporary environments: ``make test-drill``.
"""

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

from helpers.command import environ, kdoctor
from kdoctor.catalog.load import load_catalog

pytestmark = [pytest.mark.drill, pytest.mark.tensorflow]

DEFECTIVE_KERAS = "3.6.0"
"""Sums the gradients of the replicas instead of averaging them (measured, see docs/smoke.md)."""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    text = load_catalog().checklists["cpu-smoke"].read_text(encoding="utf-8")
    path = tmp_path / "job.yaml"
    path.write_text(text.replace("name: cpu-smoke", "name: job"))
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """An environment with pip, and with the TensorFlow of this one."""
    folder = tmp_path / "job"
    venv.create(folder, with_pip=True, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "tensorflow-of-the-tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "bin" / "python"
    run(f"{python} -m pip install --quiet --disable-pip-version-check --no-deps --ignore-installed keras==3.15.1")
    return python


def run(command: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["/bin/sh", "-ec", command], check=False, capture_output=True, text=True, env=environ())
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done


def check(job: Path, python: Path) -> dict[str, Any]:
    done = kdoctor("check", "-c", job, "--python", python, "--format", "json", timeout_s=400)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def drifted(report: dict[str, Any]) -> list[Any]:
    """What drifted, without the speeds, which vary on a busy machine."""
    return [item for item in report["drift"]["changes"] if not item["fact"].endswith("/step-seconds")]


def test_defective_keras_fails_and_the_printed_commands_undo_it(job: Path, target: Path) -> None:
    recorded = kdoctor("checklist", "record", job, "--python", target, timeout_s=400)
    assert recorded.returncode == 0, recorded.stdout
    assert drifted(check(job, target)) == []

    run(f"{target} -m pip install --quiet --disable-pip-version-check --no-deps keras=={DEFECTIVE_KERAS}")
    failing = check(job, target)
    assert failing["verdict"] == "fail"
    failed = {item["id"] for item in failing["results"] if item["status"] == "fail"}
    assert {"versions.keras-compatible", "smoke.baseline"} <= failed
    first = drifted(failing)[0]
    assert (first["fact"], first["old"], first["new"]) == ("packages.keras", "3.15.1", DEFECTIVE_KERAS)
    assert "smoke.baseline" in first["explains"]
    assert failing["decisions"][0]["action"] == "roll back at once"

    plan = json.loads(kdoctor("rollback", "-c", job, "--python", target, "-f", "json").stdout)
    (step,) = plan["steps"]
    for command in (*step["commands"], *step["verify"]):
        run(command)
    passing = check(job, target)
    assert passing["verdict"] == "pass"
    assert drifted(passing) == []


def test_recorded_environment_can_be_built_again_and_trains(job: Path) -> None:
    assert kdoctor("checklist", "record", job, "--python", sys.executable, timeout_s=400).returncode == 0
    done = kdoctor("rollback", "-c", job, "--verify", "--python", sys.executable, timeout_s=1500)
    assert done.returncode == 0, done.stdout
