"""What a job computes from a whole batch at once. Replicas compute it from their shares, and get something else."""

from __future__ import annotations

import contextlib
from typing import Any, List, Optional

import numpy as np
import tensorflow as tf

from kdoctor_job.target.measures import TOLERANCE
from kdoctor_job.target.parts import keras_of
from kdoctor_job.target.random_numbers import random_numbers_fixed


def of_whole_batch(model: Any, batch: Any, replicas: int) -> Optional[str]:
    """The first part of the job whose value for a batch does not follow from the values for its shares.

    That is ``outputs`` if those of an example depend on the others, ``layers`` if what layers add to the loss is not a
    mean over the examples, ``loss`` if the rest of the loss is neither a mean nor a sum; None if none of them is known.
    """
    shares = zip(*(np.split(leaf, replicas) for leaf in tf.nest.flatten(batch)))
    kept: List[List[Any]] = []
    for rows in (tf.nest.flatten(batch), *shares):
        kept.append([])
        # Some models have neither call nor a loss that train_step does not compute.
        with contextlib.suppress(Exception), random_numbers_fixed():
            _compute(model, tf.nest.pack_sequence_as(batch, rows), kept[-1])
    whole, *parts = kept
    means = [np.mean(values, axis=0) for values in zip(*(part[1:] for part in parts))][: len(whole[1:])]
    if means and not all(_equal(one, np.concatenate(ones)) for one, *ones in zip(*(part[0] for part in kept))):
        return "outputs"
    if means and not _equal(whole[1], means[0]):
        return "layers"
    if len(means) > 1 and not (_equal(whole[2], means[1]) or _equal(whole[2], replicas * means[1])):
        return "loss"
    return None


def _compute(model: Any, rows: Any, values: List[Any]) -> None:
    """Append the outputs, what layers add to the loss, and the rest of the loss."""
    inputs, targets, weights = keras_of(model).utils.unpack_x_y_sample_weight(rows)
    outputs = model(inputs, training=False)
    values.append([np.asarray(leaf, "float64") for leaf in tf.nest.flatten(outputs)])
    values.append(float(sum(map(tf.reduce_sum, model.losses))))
    loss = model.compute_loss(x=inputs, y=targets, y_pred=outputs, sample_weight=weights)
    values.append(float(tf.reduce_sum(loss)) - values[-1])


def _equal(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=0, atol=TOLERANCE * float(np.max(np.abs(one), initial=0.0))))
