"""``kdoctor check --model --data`` on a job of Keras 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import keras2_job
from helpers.cases import cases
from helpers.tiers import every_second_day


@pytest.mark.tensorflow
@every_second_day(1)
@cases("data", pytest.param(keras2_job.SCRIPT, marks=pytest.mark.smoke_full))
def test_correct_tf_keras_job_passes(tmp_path: Path, data: str) -> None:
    keras2_job.assert_passed(keras2_job.judged(tmp_path, data, TF_USE_LEGACY_KERAS="1"))


@pytest.mark.smoke_full
def test_starved_tf_keras_job_fails_final_batch(tmp_path: Path) -> None:
    found = keras2_job.judged(tmp_path, "starving", TF_USE_LEGACY_KERAS="1")
    assert keras2_job.failed(found) == ["job.final-batch"]


@pytest.mark.smoke_full
def test_model_of_tf_keras_is_copied(tmp_path: Path) -> None:
    tmp_path.joinpath("train.py").write_text(keras2_job.JOB, encoding="utf-8")
    command = [sys.executable, "-c", keras2_job.OF_THE_OBJECT]
    environ = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=300)
    assert done.stdout.endswith("True\n"), done.stderr
