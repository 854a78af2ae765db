"""Which optimizers hide a gradient that is too large by a factor, such as the number of replicas.

Keras 3.5 to 3.7 sum the gradients of the replicas instead of averaging them, and so does a loss that is the mean of its
batch. Steps of SGD grow with the gradient. Adam and most others divide by its size, but keep it in their variables.
"""

from __future__ import annotations

import inspect
from typing import Any, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_job.target.parts import is_own_class

_FACTOR = 4.0
_EQUAL = 0.02
"""Relative difference that counts as equal: RMSprop's first step divides by a small number plus epsilon."""


def hides_scale(keras: Any, optimizer: Any, *, clips: bool, in_slots: bool) -> str:
    """Why the weights may not show a gradient that is too large; empty if they do.

    Args:
        keras: the package of the optimizer.
        optimizer: the job's. A new one with its settings takes a step with a gradient, and with a larger one.
        clips: whether it clips gradients, which limits them to a length.
        in_slots: whether its variables were compared, too, which may show the gradient.
    """
    if clips:
        return "clipped gradients have a limited size"
    kind = type(getattr(optimizer, "inner_optimizer", optimizer)).__name__
    try:
        (way, slots), (other_way, other_slots) = (_step(keras, optimizer, factor) for factor in (1.0, _FACTOR))
    except Exception:
        return f"it is not known whether the steps of {kind} grow with the gradient"
    is_seen = way.any() and _are_equal(other_way, _FACTOR * way)
    if is_seen or (in_slots and not _are_equal(slots, other_slots)):
        return ""
    return f"the steps of {kind} do not grow with the gradient"


def _step(keras: Any, optimizer: Any, factor: float) -> Tuple[Any, Any]:
    """How far a matrix moves, and the variables of the optimizer."""
    gradient = np.random.RandomState(3).normal(size=(6, 5)).astype("float32")
    made = _new(optimizer)
    variable = getattr(keras, "Variable", tf.Variable)(np.zeros_like(gradient))
    made.build([variable])
    made.apply_gradients([(tf.constant(factor * gradient), variable)])
    slots = made.variables() if callable(made.variables) else made.variables
    return variable.numpy(), np.concatenate([np.ravel(one.numpy()).astype("float64") for one in slots])


def _are_equal(one: Any, other: Any) -> bool:
    return bool(np.max(np.abs(one - other)) <= _EQUAL * np.max(np.abs(one)))


def _new(optimizer: Any) -> Any:
    """A new optimizer with the same settings.

    Raises:
        ValueError: its class does not report all of them.
    """
    kind, rate = type(optimizer), getattr(optimizer, "_learning_rate", None)
    config = optimizer.get_config()
    if is_own_class(kind) and not config.keys() >= set(inspect.signature(kind).parameters) - {"args", "kwargs"}:
        raise ValueError(f"get_config() of {kind.__name__} does not return all arguments")
    # Schedules and functions have no state, and may not be found by name.
    kept = {"learning_rate": rate} if callable(rate) and not hasattr(rate, "assign") else {}
    return kind.from_config({**config, **kept})
