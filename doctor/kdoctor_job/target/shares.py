"""What a job computes from a whole batch at once. Replicas compute it from their shares, and get something else."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, List, Optional

import numpy as np
import tensorflow as tf

from kdoctor_job.target import measures
from kdoctor_job.target.batches import last_bit
from kdoctor_job.target.measures import TOLERANCE
from kdoctor_job.target.options import state_held
from kdoctor_job.target.own_fit import as_keras_gets
from kdoctor_job.target.parts import keras_of
from kdoctor_job.target.random_numbers import random_numbers_fixed

if TYPE_CHECKING:
    from kdoctor_job.target.copies import Setup
    from kdoctor_job.target.trials import Trials

_LINEAR = 0.02
"""If a step of SGD with a batch differs from the mean of those with its shares by more, it is another one."""


_ROUNDING = 1e-5
"""Of a mean in float32. Losses before the first step are so similar that only this shows other weights of examples."""


def of_whole_batch(model: Any, batch: Any, replicas: int) -> Optional[str]:
    """The first part of the job whose value for a batch does not follow from the values for its shares.

    That is ``outputs`` if those of an example depend on the others, ``layers`` if what layers add to the loss is not a
    mean over the examples, ``loss`` if the rest of the loss is neither a mean nor a sum; None if none of them is known.
    An output without a row for each example, as the loss that models of Hugging Face return, is a part of the loss.
    Shares that are alike have almost the value of the whole. The gradient of the loss shows the difference.
    """
    leaves = tf.nest.flatten(batch)
    shares = zip(*(np.split(leaf, replicas) for leaf in leaves))
    whole, *parts = (_values_of(model, tf.nest.pack_sequence_as(batch, rows)) for rows in (leaves, *shares))
    known, exact = min(map(len, (whole, *parts))), max(_ROUNDING, last_bit(model))
    outputs, layers, loss, slopes = range(4)

    def are_joined(place: int, factor: int = 1, allowed: float = TOLERANCE) -> bool:
        pairs = zip(whole[place], zip(*(part[place] for part in parts)))
        rows = [(one, ones) for one, ones in pairs if len(one) == len(leaves[0])]
        return all(_equal(factor * one, np.concatenate(ones), allowed) for one, ones in rows)

    if known > outputs and not are_joined(outputs):
        return "outputs"
    for place, one in enumerate(whole[outputs] if known > outputs else ()):
        mean = np.mean([part[outputs][place] for part in parts], axis=0)
        if len(one) != len(leaves[0]) and not any(_equal(one, factor * mean, exact) for factor in (1, replicas)):
            return "loss"
    if known > layers and not _equal(whole[layers], np.mean([part[layers] for part in parts])):
        return "layers"
    if known <= loss:
        return None
    mean, allowed = np.mean([part[loss] for part in parts]), max(measures.QUIET, last_bit(model))
    follows = any(
        _equal(whole[loss], replicas // factor * mean) and (known <= slopes or are_joined(slopes, factor, allowed))
        for factor in (replicas, 1)  # a mean or a sum
    )
    return None if follows else "loss"


def is_step_of_whole_batch(trials: Trials, setup: Setup) -> bool:
    """Whether a step of an own ``train_step`` with a batch is another one than the mean of those with its shares.

    Args:
        trials: its trainings.
        setup: with SGD, whose steps are proportional to the gradient.
    """
    model, replicas = trials.mirrored, trials.strategy.num_replicas_in_sync
    normalises = any("moving_mean" in str(getattr(one, "path", one.name)) for one in model.non_trainable_variables)
    if normalises or type(model).train_step is keras_of(model).Model.train_step:
        return False
    kept, trials.batches = trials.batches, trials.batches[:1]
    try:
        whole = trials.on_one_device(setup)
        parts = [trials.on_one_device(setup, part=(place, replicas)).weights for place in range(replicas)]
    except Exception:  # of a batch that cannot be split, or no time is left
        return False
    finally:
        trials.batches = kept
    started, moved, *shares = map(whole.of_trainable, (whole.started, whole.weights, *parts))
    scale = measures.scale_of(started, moved, measures.largest)
    apart = measures.largest(moved, [[np.mean(ones, axis=0)] for ones in zip(*shares)])
    return scale is not None and bool(measures.max_or_nan(apart / scale) > _LINEAR)


def _values_of(model: Any, rows: Any) -> List[Any]:
    """The outputs, what layers add to the loss, the rest of the loss, and its gradient by the outputs.

    Only those before the first that raises. Some models have no call, or a loss that only train_step computes.
    """
    values: List[Any] = []
    with contextlib.suppress(Exception), random_numbers_fixed(), state_held(model):
        inputs, targets, weights = keras_of(model).utils.unpack_x_y_sample_weight(as_keras_gets(model, rows))
        outputs = model(inputs, training=False)
        values.append([np.atleast_1d(np.asarray(leaf, "float64")) for leaf in tf.nest.flatten(outputs)])
        values.append(float(sum(map(tf.reduce_sum, model.losses))))
        known = [leaf for leaf in tf.nest.flatten(outputs) if leaf.dtype.is_floating]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(known)
            loss = model.compute_loss(x=inputs, y=targets, y_pred=outputs, sample_weight=weights)
        values.append(float(tf.reduce_sum(loss)) - values[-1])
        slopes = tape.gradient(loss, known, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        values.append([np.atleast_1d(np.asarray(leaf, "float64")) for leaf in slopes])
    return values


def _equal(one: Any, other: Any, tolerance: float = TOLERANCE) -> bool:
    allowed = tolerance * float(np.max(np.abs(one), initial=0.0))
    return np.shape(one) == np.shape(other) and bool(np.allclose(one, other, rtol=0, atol=allowed))
