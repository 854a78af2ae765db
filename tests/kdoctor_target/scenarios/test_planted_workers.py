"""A defect of Keras over two workers is detected by the case that is about it, and by no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from helpers import smoke
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor_checks.smoke.multi_worker_features import multi_worker_features

pytestmark = pytest.mark.smoke_full

DEFECTS = {
    **smoke.ignored_options("tf.distribute.get_strategy().num_replicas_in_sync == 1"),
    "metrics-of-classes": """
plain = tf.keras.metrics.F1Score.update_state

def deaf(self, y_true, y_pred, sample_weight=None):
    replica = tf.distribute.get_replica_context()
    on_first = tf.equal(replica.replica_id_in_sync_group, 0)
    plain(self, tf.where(on_first, y_true, tf.zeros_like(y_true)), y_pred, sample_weight)

tf.keras.metrics.F1Score.update_state = deaf
""",
}
TRAINED = (*DEFECTS, "adam-built-in-scope", "clip-after-reduction", "dropout-per-replica")


@pytest.mark.parametrize("name", DEFECTS)
def test_defect_is_detected_by_the_case_about_it(name: str, tmp_path: Path) -> None:
    (scenario,) = [replace(one, cases=TRAINED) for one in SCENARIOS if one.id == multi_worker_features.scenario]
    code = f"import tensorflow as tf\n{DEFECTS[name]}"
    assert smoke.findings_with(tmp_path, code, scenario, multi_worker_features, ("tensorflow",)) == {name}
