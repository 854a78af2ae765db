"""``kdoctor check --model --data`` on a job of Keras 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers import keras2_job


@pytest.mark.tensorflow
def test_a_right_job_of_tf_keras_passes_though_it_normalises_fused(tmp_path: Path) -> None:
    keras2_job.assert_right(keras2_job.judged(tmp_path, "data", TF_USE_LEGACY_KERAS="1"))


@pytest.mark.tensorflow
def test_its_pitfall_is_found(tmp_path: Path) -> None:
    found = keras2_job.judged(tmp_path, "starving", TF_USE_LEGACY_KERAS="1")
    assert keras2_job.failed(found) == ["job.final-batch"]
