"""Whether losses that read probabilities (``from_logits=False``) get some.

The other case is harmless: Keras finds the logits in front of a softmax.
"""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_job.target.batches import part_of
from kdoctor_job.target.parts import keras_of

_ROUNDING = 1e-2
"""Also of float16."""


def probabilities_read(model: Any, batch: Any, replicas: int) -> Dict[str, Any]:
    """Which of these losses there are, and which gets something else, by the names of ``JobTraining``'s fields.

    Args:
        model: a compiled one.
        batch: arrays; the inputs, or a tuple that begins with them.
        replicas: their number: the model is called with the share of one.
    """
    keras, given = keras_of(model), getattr(model, "loss", None)
    if not any(_name(keras, loss) for loss in tf.nest.flatten(given)):
        return {"read_probabilities": []}
    inputs = batch[0] if isinstance(batch, tuple) else batch
    try:
        pairs = _pairs(model, given, model(part_of(inputs, 0, replicas), training=False))
    except Exception:
        return {"read_probabilities": None}  # such as outputs that have other names than the losses
    read = [(_name(keras, loss), np.asarray(output)) for loss, output in pairs if _name(keras, loss)]
    wrong = (
        f"{name} reads probabilities, and gets {output.min():.3g} to {output.max():.3g}"
        for name, output in read
        if output.size and (output.min() < -_ROUNDING or output.max() > 1 + _ROUNDING)
    )
    return {"read_probabilities": sorted({name for name, _ in read}), "not_probabilities": next(wrong, None)}


def _name(keras: Any, given: Any) -> str:
    """The name of a loss; empty if it does not read probabilities."""
    loss = keras.losses.get(given)
    if hasattr(loss, "get_config"):
        logits, name = loss.get_config().get("from_logits"), type(loss).__name__
    else:
        option = inspect.signature(loss).parameters.get("from_logits") if callable(loss) else None
        logits, name = option and option.default, getattr(loss, "__name__", "")
    return name if logits is False else ""


def _pairs(model: Any, given: Any, outputs: Any) -> List[Tuple[Any, Any]]:
    """Each loss and its output. A dictionary of losses names outputs, also of a model that returns a list."""
    parts = tf.nest.flatten(outputs)
    if isinstance(given, dict):
        named = outputs if isinstance(outputs, dict) else dict(zip(model.output_names, parts))
        return [(loss, named[name]) for name, loss in given.items()]
    losses = tf.nest.flatten(given)
    if len(losses) != len(parts):
        raise ValueError
    return list(zip(losses, parts))
