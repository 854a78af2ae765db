"""``kdoctor check --model --data`` on a job of Keras 2."""

from pathlib import Path

import pytest

from helpers import keras2_job


@pytest.mark.smoke_full
def test_correct_tf_keras_job_passes(tmp_path: Path) -> None:
    keras2_job.assert_passed(keras2_job.judged(tmp_path, "data", TF_USE_LEGACY_KERAS="1"))


@pytest.mark.smoke_full
def test_starved_tf_keras_job_fails_final_batch(tmp_path: Path) -> None:
    found = keras2_job.judged(tmp_path, "starving", TF_USE_LEGACY_KERAS="1")
    assert keras2_job.failed(found) == ["job.final-batch"]
