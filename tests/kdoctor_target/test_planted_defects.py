"""Defects that are planted into the child's Keras or TensorFlow: each is caught by the scenario that should."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers import smoke
from helpers.judging import compute_check
from kdoctor.check import Check
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.smoke.session import SmokeSettings, run_scenarios
from kdoctor_checks.smoke.baseline import baseline
from kdoctor_checks.smoke.closed_form import closed_form

pytestmark = pytest.mark.tensorflow

_NAN = """
plain = tf.keras.layers.Dense.call

def poisoned(self, inputs, *args, **kwargs):
    outputs = plain(self, inputs, *args, **kwargs)
    return outputs * float("nan") if tf.distribute.get_strategy().num_replicas_in_sync > 1 else outputs

tf.keras.layers.Dense.call = poisoned
"""

_DROPPED_REPLICA = """
plain = tf.GradientTape.gradient

def dropped(self, *args, **kwargs):
    gradients = plain(self, *args, **kwargs)
    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return gradients
    heard = tf.cast(tf.not_equal(replica.replica_id_in_sync_group, 1), tf.float32)
    return [gradient * heard for gradient in gradients]

tf.GradientTape.gradient = dropped
"""

_SKIPPED_UPDATE = """
plain = tf.keras.optimizers.SGD.update_step

def lazy(self, gradient, variable, learning_rate):
    awake = tf.cast(tf.not_equal(tf.cast(self.iterations, tf.int64), 3), tf.float32)
    plain(self, gradient * awake, variable, learning_rate)

tf.keras.optimizers.SGD.update_step = lazy
"""

_WRONG_SHARDS = """
plain = tf.distribute.Strategy.experimental_distribute_dataset

def doubled(self, dataset, options=None):
    if self.num_replicas_in_sync == 1:
        return plain(self, dataset, options)

    def first_half_twice(inputs, targets):
        half = tf.shape(inputs)[0] // 2
        return tf.concat([inputs[:half]] * 2, 0), tf.concat([targets[:half]] * 2, 0)

    return plain(self, dataset.map(first_half_twice), options)

tf.distribute.Strategy.experimental_distribute_dataset = doubled
"""


def judged(folder: Path, defect: str) -> dict[str, Result]:
    """What the checks say of the two scenarios with that defect in the child."""
    (folder / "planted_defect.py").write_text("import tensorflow as tf\n" + defect, encoding="utf-8")
    settings = SmokeSettings(devices_kind="cpu", replicas=2, preload=("tensorflow", "planted_defect"))
    wanted = [scenario for scenario in SCENARIOS if scenario.id in ("smoke.baseline", "smoke.closed-form")]
    where = smoke.context(TF_USE_LEGACY_KERAS="0", PYTHONPATH=str(folder))
    runs = run_scenarios(wanted, settings, where).runs
    return {check.id: _result(check, runs[check.id]) for check in (baseline, closed_form)}


def _result(check: Check, run: object) -> Result:
    assert isinstance(run, SmokeRun), run
    return compute_check(check, run)


def observed(result: Result) -> str:
    assert result.status is Status.FAIL, result
    return result.findings[0].finding.observed


def test_nan_weights_are_detected(tmp_path: Path) -> None:
    results = judged(tmp_path, _NAN)
    assert "NaN or infinity in" in observed(results["smoke.baseline"])
    assert "NaN or infinity in" in observed(results["smoke.closed-form"])


def test_ignored_replica_is_detected(tmp_path: Path) -> None:
    results = judged(tmp_path, _DROPPED_REPLICA)
    assert "weights differ by up to" in observed(results["smoke.baseline"])
    assert "weights differ by up to" in observed(results["smoke.closed-form"])


def test_missing_update_is_detected_only_by_closed_form(tmp_path: Path) -> None:
    results = judged(tmp_path, _SKIPPED_UPDATE)
    assert results["smoke.baseline"].status is Status.PASS
    assert "on one device already, weights differ from NumPy's by" in observed(results["smoke.closed-form"])


def test_identical_examples_on_all_replicas_are_detected(tmp_path: Path) -> None:
    results = judged(tmp_path, _WRONG_SHARDS)
    assert "weights differ by up to" in observed(results["smoke.baseline"])
    assert "weights differ by up to" in observed(results["smoke.closed-form"])
