"""A hanging training reports the phase in which it hangs and the last finished one, with the real TensorFlow."""

from pathlib import Path

import pytest

from helpers import smoke
from kdoctor.facts import SmokeCase
from kdoctor_checks.smoke._cases import describe_end

pytestmark = pytest.mark.tensorflow

_TRAINING = """
import time
import tensorflow as tf
from kdoctor_target.training.regression import Batches, regression
from kdoctor_target.training.replicas import compile_model, make_strategy, train

calls = []

def count():
    calls.append(1)
    if len(calls) == {call}:
        time.sleep(60)
    return 0.0

class Slow(tf.keras.layers.Layer):
    def call(self, inputs):
        replica = tf.distribute.get_replica_context()
        if {in_trace} and replica is not None and replica.num_replicas_in_sync == 2:
            time.sleep(60)
        late = tf.py_function(count, [], tf.float32)
        late.set_shape(())
        return inputs + late

strategy = make_strategy(case)
case.phase("build")
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.InputLayer((4,)), Slow(), tf.keras.layers.Dense(1)])
    compile_model(case, model)
inputs, targets = regression(64)
train(case, model, Batches(inputs, targets, 16))
case.phase("save")
time.sleep(60)
"""


def hung(folder: Path, *, in_trace: bool = False, call: int = 0) -> SmokeCase:
    body = _TRAINING.format(in_trace=in_trace, call=call)
    fake = smoke.scenario(folder, deadline_s=10.0, hang=body)
    case = smoke.only_case(fake, smoke.context(TF_USE_LEGACY_KERAS="0"), preload=("tensorflow",), parallel=1)
    assert case.outcome == "timed-out", case
    return case


@pytest.mark.smoke_full
def test_error_in_trace_is_located(tmp_path: Path) -> None:
    case = hung(tmp_path, in_trace=True)
    assert (case.phase, case.finished, case.steps) == ("trace", "data", 0)
    assert all(phase in describe_end(case) for phase in ("trace", "data"))


def test_error_in_third_step_is_located(tmp_path: Path) -> None:
    case = hung(tmp_path, call=5)  # each of two replicas calls once a step
    assert (case.phase, case.finished, case.steps) == ("step 3", "step 2", 2)
    assert all(phase in describe_end(case) for phase in ("step 3", "step 2"))


@pytest.mark.smoke_full
def test_error_while_saving_is_located(tmp_path: Path) -> None:
    case = hung(tmp_path)
    assert (case.phase, case.finished, case.steps) == ("save", "step 8", 8)
    assert all(phase in describe_end(case) for phase in ("save", "step 8"))
