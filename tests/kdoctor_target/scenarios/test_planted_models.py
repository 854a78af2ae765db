"""A defect planted into a feature is detected by the case of that feature, and by no other case of its check."""

from dataclasses import replace
from typing import NamedTuple

import pytest

from helpers import smoke
from helpers.tiers import asked_for, tiered
from kdoctor.check import Check
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.smoke.model_scenarios import MODELS
from kdoctor.smoke.session import SmokeSettings
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.callbacks import callbacks
from kdoctor_checks.smoke.evaluate import evaluate
from kdoctor_checks.smoke.losses import losses
from kdoctor_checks.smoke.metrics import metrics
from kdoctor_checks.smoke.other_random_layers import other_random_layers

pytestmark = pytest.mark.tensorflow

_PROGRAM = """
import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case_main import case_function
from kdoctor_target.scenarios import callbacks, evaluate, losses, metrics, other_random_layers

MODULES = {
    "metrics": metrics, "evaluate": evaluate, "losses": losses,
    "callbacks": callbacks, "other-random-layers": other_random_layers,
}


def replicas():
    return tf.distribute.get_strategy().num_replicas_in_sync


def summed_metric():
    plain = tf.keras.metrics.Precision.result
    tf.keras.metrics.Precision.result = lambda self: plain(self) * 2


def equal_masks():
    from keras.src.backend.tensorflow import random
    random.draw_seed = lambda seed: tf.constant([1, 2])


def full(dataset, change):
    batches = list(dataset.as_numpy_iterator())
    examples = [np.concatenate(parts) for parts in zip(*batches)]
    size = len(batches[0][0])
    changed = tuple(change(part, size) for part in examples)
    return tf.data.Dataset.from_tensor_slices(changed).batch(size)


def counted_padding():
    plain = tf.keras.Model.evaluate

    def padded(self, x=None, *args, **kwargs):
        if not kwargs.get("_use_cached_eval_dataset"):
            x = full(x, lambda part, size: np.concatenate([part, np.repeat(part[-1:], -len(part) % size, axis=0)]))
        return plain(self, x, *args, **kwargs)

    tf.keras.Model.evaluate = padded


def dropped_tail():
    plain = tf.keras.Model.evaluate

    def cut(self, x=None, y=None, **kwargs):
        if not kwargs.pop("_use_cached_eval_dataset", False):
            return plain(self, x, y, **kwargs)
        if y is None:
            return plain(self, full(x, lambda part, size: part[: len(part) // size * size]), **kwargs)
        whole = len(x) // kwargs["batch_size"] * kwargs["batch_size"]
        return plain(self, x[:whole], y[:whole], **kwargs)

    tf.keras.Model.evaluate = cut


def reordered_predictions():
    plain = tf.keras.Model.predict
    tf.keras.Model.predict = lambda self, *args, **kwargs: plain(self, *args, **kwargs)[::-1]


def ignored_zero_weights():
    plain = tf.keras.losses.Loss.__call__

    def ignore(self, y_true, y_pred, sample_weight=None):
        context = tf.distribute.get_replica_context()
        if sample_weight is not None and context and context.num_replicas_in_sync > 1:
            on_second = tf.equal(context.replica_id_in_sync_group, 1)
            ones = tf.ones_like(sample_weight)
            sample_weight = tf.where(on_second & tf.equal(sample_weight, 0), ones, sample_weight)
        return plain(self, y_true, y_pred, sample_weight=sample_weight)

    tf.keras.losses.Loss.__call__ = ignore


def another_best_epoch():
    plain = tf.keras.callbacks.EarlyStopping._is_improvement

    def improves(self, *args):
        several = getattr(self.model, "distribute_strategy", None)
        return several.num_replicas_in_sync > 1 if several else plain(self, *args)

    tf.keras.callbacks.EarlyStopping._is_improvement = improves


def planted(defect, run):
    def case(one):
        defect()
        run(one)

    return case


def case_of(name):
    defect, module, case = name.split("--")
    return planted(globals()[defect], case_function(MODULES[module], case))


CASES = {name: case_of(name) for name in NAMES}
"""


class Planted(NamedTuple):
    """A defect, the check that detects it, and its case."""

    defect: str
    check: Check
    case: str
    others: tuple[str, ...]


DEFECTS = (
    Planted("summed_metric", metrics, "binary", ("classes", "on-batch")),
    Planted("equal_masks", other_random_layers, "seed-per-replica", ()),
    Planted("counted_padding", evaluate, "evaluate", ("predict", "validation")),
    Planted("dropped_tail", evaluate, "validation", ("evaluate", "predict")),
    Planted("reordered_predictions", evaluate, "predict", ("evaluate", "validation")),
    Planted("ignored_zero_weights", losses, "sample-weight", ("class-weight", "train-step")),
    Planted("another_best_epoch", callbacks, "best-epoch", ("learning-rate",)),
)


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SmokeRun:
    program = tmp_path_factory.mktemp("planted") / "program.py"
    names = tuple(
        f"{planted.defect}--{planted.check.id.removeprefix('smoke.')}--{case}"
        for planted in asked_for(request, "planted")
        for case in (planted.case, *planted.others)
    )
    program.write_text(f"NAMES = {names!r}\n{_PROGRAM}", encoding="utf-8")
    scenario = replace(MODELS[0], id="smoke.planted", program=program, cases=names)
    settings = SmokeSettings(devices_kind="cpu", replicas=2)
    result = smoke.run_scenarios([scenario], settings, smoke.context(TF_USE_LEGACY_KERAS="0")).runs["smoke.planted"]
    assert isinstance(result, SmokeRun), result
    return result


@pytest.mark.parametrize("planted", tiered(DEFECTS, ()), ids=lambda planted: planted.defect)
def test_only_the_case_of_the_feature_detects_it(run: SmokeRun, planted: Planted) -> None:
    prefix = f"{planted.defect}--{planted.check.id.removeprefix('smoke.')}--"
    cases = tuple(
        replace(case, name=case.name.removeprefix(prefix)) for case in run.cases if case.name.startswith(prefix)
    )
    assert [case.outcome for case in cases] == ["trained"] * len(cases), [case.error_message for case in cases]
    result = compute_check(planted.check, replace(run, scenario=planted.check.scenario or "", cases=cases))
    assert result.status is Status.FAIL
    assert [item.finding.subject for item in result.findings] == [f"training {planted.case}"]
    assert {item.subject for item in result.evidence} == {f"training {name}" for name in planted.others}
