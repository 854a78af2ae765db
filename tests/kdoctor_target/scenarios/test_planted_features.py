"""A defect in one feature of Keras is detected by the cases that are about it, and by no others."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from helpers import smoke
from helpers.checks import BUILT_IN
from kdoctor.check import Check
from kdoctor.facts import SmokeRun
from kdoctor.smoke.feature_scenarios import FEATURES
from kdoctor.smoke.session import SmokeSettings
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.optimizer_options import optimizer_options
from kdoctor_checks.smoke.optimizers import optimizers

pytestmark = pytest.mark.smoke_full

CHECKS: tuple[Check, ...] = (
    BUILT_IN["smoke.clipping"],
    BUILT_IN["smoke.clipping-options"],
    optimizer_options,
    optimizers,
    BUILT_IN["smoke.random-layers"],
)
TRAINED = {
    "smoke.silent-features": ("clipnorm", "dropout"),
    "smoke.features": ("global-clipnorm",),
    "smoke.optimizers": ("sgd", "momentum", "adam"),
    "smoke.optimizer-options": ("weight-decay", "ema", "exponential-decay"),
}


@dataclass(frozen=True, kw_only=True)
class Defect:
    """A change of the child's Keras."""

    code: str
    found_by: set[str]
    """The cases that must fail, in addition to those that fail without a defect."""
    legacy: bool = False
    """Whether it is planted into tf_keras, in which no case fails without a defect."""


FAIL_ANYWAY = {"clipnorm", "global-clipnorm", "dropout"}
"""What fails with Keras 3 without a defect."""

DEFECTS = {
    "clipping-ignored-on-one-replica": Defect(
        legacy=True,
        found_by={"clipnorm", "global-clipnorm"},
        code="""
from tf_keras.src.optimizers.optimizer import _BaseOptimizer as Optimizer
plain = Optimizer._clip_gradients

def ignoring(self, gradients):
    clipped = plain(self, gradients)
    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1 or not (self.clipnorm or self.global_clipnorm):
        return clipped
    is_second = tf.equal(replica.replica_id_in_sync_group, 1)
    return [tf.where(is_second, before, after) for before, after in zip(gradients, clipped)]

Optimizer._clip_gradients = ignoring
""",
    ),
    "mask-seeded-alike": Defect(
        legacy=True,
        found_by={"dropout"},
        code="""
def alike(self, inputs, rate, noise_shape=None):
    return tf.nn.experimental.stateless_dropout(inputs, rate, seed=[3, 4])

from tf_keras.src.backend import RandomGenerator
RandomGenerator.dropout = alike
""",
    ),
    "slot-not-updated-on-one-replica": Defect(
        found_by={"adam"},
        code="""
from tensorflow.python.distribute.distribute_lib import get_update_replica_id
plain = tf.keras.optimizers.Adam.assign_add

def lazy(self, variable, value):
    if "momentum" in str(getattr(variable, "path", "")) and get_update_replica_id() == 1:
        return
    plain(self, variable, value)

tf.keras.optimizers.Adam.assign_add = lazy
""",
    ),
    "average-not-updated": Defect(
        found_by={"ema"},
        code="""
plain = tf.keras.optimizers.Optimizer._update_model_variables_moving_average

def lazy(self, variables):
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        plain(self, variables)

tf.keras.optimizers.Optimizer._update_model_variables_moving_average = lazy
""",
    ),
    "schedule-counts-each-replica": Defect(
        found_by={"exponential-decay"},
        code="""
plain = tf.keras.optimizers.schedules.ExponentialDecay.__call__

def hasty(self, step):
    return plain(self, step * tf.distribute.get_strategy().num_replicas_in_sync)

tf.keras.optimizers.schedules.ExponentialDecay.__call__ = hasty
""",
    ),
    "weights-decay-for-each-replica": Defect(
        found_by={"weight-decay"},
        code="""
plain = tf.keras.optimizers.Optimizer._apply_weight_decay

def repeated(self, variables):
    for _ in range(tf.distribute.get_strategy().num_replicas_in_sync):
        plain(self, variables)

tf.keras.optimizers.Optimizer._apply_weight_decay = repeated
""",
    ),
}


def failed(folder: Path, defect: Defect) -> set[str]:
    """The cases with a finding, with the defect in the child process."""
    (folder / "planted_defect.py").write_text(f"import tensorflow as tf\n{defect.code}", encoding="utf-8")
    settings = SmokeSettings(devices_kind="cpu", replicas=2, preload=("tensorflow", "planted_defect"))
    scenarios = [replace(one, cases=TRAINED[one.id]) for one in FEATURES if one.id in TRAINED]
    where = smoke.context(TF_USE_LEGACY_KERAS=str(int(defect.legacy)), PYTHONPATH=str(folder))
    runs = smoke.run_scenarios(scenarios, settings, where).runs
    found: set[str] = set()
    for check in CHECKS:
        run = runs[check.scenario or ""]
        assert isinstance(run, SmokeRun), run
        assert not run.failure, run.failure
        found |= {item.finding.subject.removeprefix("training ") for item in compute_check(check, run).findings}
    return found


@pytest.mark.parametrize("name", DEFECTS)
def test_defect_is_detected_by_the_case_about_it(name: str, tmp_path: Path) -> None:
    defect = DEFECTS[name]
    assert failed(tmp_path, defect) == defect.found_by | (set() if defect.legacy else FAIL_ANYWAY)
