"""A real TensorFlow of Keras 2: the tier standard and a job of one's own. See ``test_environments.py``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers import keras2_job
from helpers.command import kdoctor
from helpers.real_environments import interpreter, make

pytestmark = [pytest.mark.matrix]

CASE = ("2.15.1", None, "3.9")


@pytest.fixture
def executable(folder: Path) -> Path:
    python = interpreter(CASE[2])
    if python is None:
        pytest.skip(f"there is no Python {CASE[2]} here (MATRIX_PYTHONS may name one)")
    return make(folder, python, CASE)


def test_no_training_of_the_tier_standard_fails(executable: Path) -> None:
    done = kdoctor(
        "smoke", "--tier", "standard", "--replicas", "2", "--python", executable, "-f", "json", timeout_s=900
    )
    results = [result for result in json.loads(done.stdout)["results"] if result["family"] == "smoke"]
    assert [(item["id"], item["status"]) for item in results if item["status"] in ("fail", "unknown")] == []
    passed = {item["id"] for item in results if item["status"] == "pass"}
    assert passed >= {
        "smoke.baseline",
        "smoke.closed-form",
        "smoke.multi-worker-fit",
        "smoke.state",
        "smoke.persistence",
    }


def test_a_model_outside_the_scope_is_told_as_trained_in_silence(executable: Path) -> None:
    named = ("smoke.model-outside-scope", "--replicas", "2", "--python", executable)
    done = kdoctor("smoke", *named, "-f", "json", timeout_s=300)
    result = next(item for item in json.loads(done.stdout)["results"] if item["id"] == "smoke.model-outside-scope")
    evidence = {item["subject"]: item["observed"] for item in result["evidence"]}
    assert "trained on one device in silence" in evidence["case all-outside"]


def test_a_right_job_passes_and_its_pitfall_is_found(executable: Path, tmp_path: Path) -> None:
    for name in ("right", "starving"):
        (tmp_path / name).mkdir()
    keras2_job.assert_right(keras2_job.judged(tmp_path / "right", "data", "--python", executable))
    found = keras2_job.judged(tmp_path / "starving", "starving", "--python", executable)
    assert keras2_job.failed(found) == ["job.final-batch"]
