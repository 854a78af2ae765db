"""Half precision: the variables stay float32, and the loss scale keeps small gradients from vanishing.

Measures: ``initial_scale`` and ``loss_scale``, before and after the training; ``variables_float32``, the number of
trainable variables that are float32.
"""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import make_batches
from kdoctor_target.training.replicas import compiled_model, inspect_weights, make_strategy, train, train_reference


def float16(case: Case) -> None:
    """``mixed_float16``, for which Keras wraps the optimizer in a loss scale."""
    _train(case, "mixed_float16")


def bfloat16(case: Case) -> None:
    """``mixed_bfloat16``, which needs no loss scale."""
    _train(case, "mixed_bfloat16")


def _train(case: Case, policy: str) -> None:
    strategy = make_strategy(case)
    batches = make_batches(strategy.num_replicas_in_sync)
    reference = train_reference(case, batches)
    tf.keras.mixed_precision.set_global_policy(policy)
    case.phase("build")
    with strategy.scope():
        model = compiled_model(case)
    case.measure({"initial_scale": _loss_scale(model.optimizer)})
    train(case, model, batches)
    single = sum(tf.as_dtype(variable.dtype) == tf.float32 for variable in model.trainable_variables)
    case.measure({"loss_scale": _loss_scale(model.optimizer), "variables_float32": single})
    inspect_weights(case, strategy, model, reference)


def _loss_scale(optimizer: Any) -> Optional[float]:
    """The optimizer's loss scale, or None if it has none."""
    scale = getattr(optimizer, "dynamic_scale", getattr(optimizer, "loss_scale", None))
    if scale is None:
        initial = getattr(optimizer, "initial_scale", None)
        return None if initial is None else float(initial)
    return float(scale.numpy() if hasattr(scale, "numpy") else scale)
