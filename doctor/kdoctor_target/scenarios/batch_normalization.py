"""BatchNormalization over data whose shares differ from replica to replica."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import (
    Batches,
    compile_model,
    inspect_weights,
    make_model,
    make_strategy,
    regression,
    train,
    train_reference,
)

STEPS = 6
PER_REPLICA = 8


def plain(case: Case) -> None:
    """Every replica normalises by its own examples, so the weights are not those of one device; they are finite."""
    _train(case, synchronized=False)


def synchronized(case: Case) -> None:
    """All replicas normalise by the moments of the whole batch, as one device does."""
    _train(case, synchronized=True)


def _train(case: Case, *, synchronized: bool) -> None:
    strategy = make_strategy(case)
    global_batch = PER_REPLICA * strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * global_batch)
    batches = Batches(inputs, targets, global_batch)
    reference = train_reference(case, batches, normalised=True)
    case.phase("build")
    with strategy.scope():
        model = compile_model(case, _synchronized() if synchronized else make_model(normalised=True))
    train(case, model, batches)
    inspect_weights(case, strategy, model, reference)


def _synchronized() -> Any:
    """The model with its normalisation synchronised."""
    config = make_model(normalised=True).get_config()
    for layer in config["layers"]:
        if layer["class_name"] == "BatchNormalization":
            layer["config"]["synchronized"] = True
    return tf.keras.Sequential.from_config(config)


CASES = {"plain": plain, "synchronized": synchronized}
