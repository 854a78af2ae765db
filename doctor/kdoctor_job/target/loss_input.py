"""Whether losses that read probabilities (``from_logits=False``) get some.

The other case is harmless: Keras finds the logits in front of a softmax.
"""

from __future__ import annotations

import inspect
from typing import Any, Iterator, Optional, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_job.target.parts import keras_of

_ROWS = 8
_ROUNDING = 1e-2
"""Also of float16."""


def not_probabilities(model: Any, batch: Any) -> Tuple[Tuple[str, ...], Optional[str]]:
    """The names of these losses, and which of them gets something else, if one does.

    Args:
        model: a compiled one.
        batch: arrays; the inputs, or a tuple that begins with them.
    """
    losses = list(_losses(model))
    names = tuple(dict.fromkeys(filter(None, losses)))
    if not names:
        return (), None
    inputs = batch[0] if isinstance(batch, tuple) else batch
    try:
        outputs = tf.nest.flatten(model(tf.nest.map_structure(lambda leaf: leaf[:_ROWS], inputs), training=False))
    except Exception:
        return (), None  # such as a batch size that is part of the model
    if len(outputs) != len(losses):
        return (), None
    for name, output in zip(losses, map(np.asarray, outputs)):
        if name and output.size and (output.min() < -_ROUNDING or output.max() > 1 + _ROUNDING):
            return names, f"{name} reads probabilities, and gets {output.min():.3g} to {output.max():.3g}"
    return names, None


def _losses(model: Any) -> Iterator[str]:
    """The name of each loss; empty if it does not read probabilities."""
    for one in tf.nest.flatten(getattr(model, "loss", None)):
        loss = keras_of(model).losses.get(one)
        if hasattr(loss, "get_config"):
            logits, name = loss.get_config().get("from_logits"), type(loss).__name__
        else:
            option = inspect.signature(loss).parameters.get("from_logits") if callable(loss) else None
            logits, name = option and option.default, getattr(loss, "__name__", "")
        yield name if logits is False else ""
