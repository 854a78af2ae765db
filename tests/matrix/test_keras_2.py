"""The standard tier and a user's job with a real Keras 2 environment. See ``test_environments.py``."""

import json
import re
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
        pytest.skip(f"Python {CASE[2]} was not found; MATRIX_PYTHONS can name an interpreter")
    return make(folder, python, CASE)


def test_standard_tier_passes(executable: Path) -> None:
    done = kdoctor(
        "smoke", "--tier", "standard", "--replicas", "2", "--python", executable, "-f", "json", timeout_s=1800
    )
    results = [result for result in json.loads(done.stdout)["results"] if result["family"] == "smoke"]
    wrong = [item for item in results if item["status"] in ("fail", "unknown")]
    assert {finding["subject"] for item in wrong for finding in item["findings"]} <= {"training nadam-built-in-scope"}
    assert {(item["id"], item["status"]) for item in wrong} <= {("smoke.custom-loop-optimizers", "fail")}
    passed = {item["id"] for item in results if item["status"] == "pass"}
    assert passed >= {
        "smoke.baseline",
        "smoke.closed-form",
        "smoke.multi-worker-fit",
        "smoke.state",
        "smoke.persistence",
    }


def test_model_outside_scope_trains_and_is_detected(executable: Path) -> None:
    named = ("smoke.model-outside-scope", "--replicas", "2", "--python", executable)
    done = kdoctor("smoke", *named, "-f", "json", timeout_s=300)
    report = json.loads(done.stdout)
    result = next(item for item in report["results"] if item["id"] == "smoke.model-outside-scope")
    assert result["status"] == "pass"
    assert {item["case"]: item["outcome"] for item in report["trainings"]}["all-outside"] == "trained"
    evidence = {item["subject"]: item["observed"] for item in result["evidence"]}
    assert re.search(r"\b0 of \d+ variables", evidence["training all-outside"])


def test_correct_job_passes_and_starving_job_fails(executable: Path, tmp_path: Path) -> None:
    for name in ("correct", "starving"):
        (tmp_path / name).mkdir()
    keras2_job.assert_passed(keras2_job.judged(tmp_path / "correct", "data", "--python", executable))
    found = keras2_job.judged(tmp_path / "starving", "starving", "--python", executable)
    assert keras2_job.failed(found) == ["job.final-batch"]
