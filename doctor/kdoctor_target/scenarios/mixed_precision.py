"""Half precision: the variables stay in single, and the loss scale keeps small gradients from vanishing.

Measures: ``initial_scale`` and ``loss_scale``, the optimizer's before and after; ``variables_float32``, how many of
the trainable variables are in single precision.
"""

from __future__ import annotations

from typing import Any, Optional

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


def float16(case: Case) -> None:
    """``mixed_float16``, where Keras puts a loss scale around the optimizer."""
    _train(case, "mixed_float16")


def bfloat16(case: Case) -> None:
    """``mixed_bfloat16``, which needs no loss scale."""
    _train(case, "mixed_bfloat16")


def _train(case: Case, policy: str) -> None:
    strategy = make_strategy(case)
    global_batch = PER_REPLICA * strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * global_batch)
    batches = Batches(inputs, targets, global_batch)
    reference = train_reference(case, batches, normalised=False)
    tf.keras.mixed_precision.set_global_policy(policy)
    case.phase("build")
    with strategy.scope():
        model = compile_model(case, make_model(normalised=False))
    case.measure({"initial_scale": _loss_scale(model.optimizer)})
    train(case, model, batches)
    single = sum(tf.as_dtype(variable.dtype) == tf.float32 for variable in model.trainable_variables)
    case.measure({"loss_scale": _loss_scale(model.optimizer), "variables_float32": single})
    inspect_weights(case, strategy, model, reference)


def _loss_scale(optimizer: Any) -> Optional[float]:
    """The loss scale, or None where the optimizer has none."""
    scale = getattr(optimizer, "dynamic_scale", getattr(optimizer, "loss_scale", None))
    if scale is None:
        initial = getattr(optimizer, "initial_scale", None)
        return None if initial is None else float(initial)
    return float(scale.numpy() if hasattr(scale, "numpy") else scale)


CASES = {"float16": float16, "bfloat16": bfloat16}
