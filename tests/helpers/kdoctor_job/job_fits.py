"""Jobs with other arguments of ``fit``, correct or with one defect that only shows with them."""

from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

import kdoctor
from helpers.kdoctor_job import job_models

WEIGHTS = {0: 1.0, 1: 5.0, 2: 0.2}


class Forgetful(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Ignores the weights of examples on every replica but the first."""

    def train_step(self, data: Any) -> Any:
        context = tf.distribute.get_replica_context()
        if len(data) == 3 and context.num_replicas_in_sync > 1:
            here = context.replica_id_in_sync_group == 0
            data = (*data[:2], tf.where(here, data[2], tf.ones_like(data[2])))
        return super().train_step(data)


class AddsUp(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Reports a validation loss that is the sum over the replicas."""

    def test_step(self, data: Any) -> Any:
        inputs, targets = data
        losses = keras.losses.sparse_categorical_crossentropy(targets, self(inputs), from_logits=True)
        return {"loss": tf.distribute.get_replica_context().num_replicas_in_sync * tf.reduce_mean(losses)}


class Fit(NamedTuple):
    """A job."""

    data: Any
    arguments: Any = None
    kind: Any = None
    """The class of the model; None for Sequential."""


class Unsavable(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Has no configuration."""

    def get_config(self) -> Any:
        raise NotImplementedError("no configuration")


def fits() -> dict[str, Fit]:
    """The jobs by name."""
    inputs, targets = job_models.examples("dense")
    arrays, data = (inputs, targets), job_models.dataset("dense")
    odd = (inputs[:23], targets[:23])
    ones = np.linspace(0.1, 2.0, len(inputs)).astype("float32")
    return {
        "class weights and validation": Fit(
            data,
            {
                "class_weight": WEIGHTS,
                "validation_data": tf.data.Dataset.from_tensor_slices(odd).batch(8),
                "epochs": 90,
                "callbacks": [],
            },
        ),
        "weights and split of arrays": Fit(
            arrays, {"sample_weight": ones, "validation_split": 0.25, "batch_size": np.int64(16), "verbose": 2}
        ),
        "forgets weights, without any": Fit(data, None, Forgetful),
        "forgets weights": Fit(data, {"class_weight": WEIGHTS}, Forgetful),
        "adds up validation": Fit(data, {"validation_data": odd, "validation_batch_size": 16}, AddsUp),
        "no argument of fit": Fit(data, {"class_weights": WEIGHTS}),
        "no dictionary": Fit(data, [WEIGHTS]),
        "two kinds of weights": Fit(arrays, {"class_weight": WEIGHTS, "sample_weight": ones}),
        "sample weights of a dataset": Fit(data, {"sample_weight": ones}),
        "split of a dataset": Fit(data, {"validation_split": 0.5}),
        "impossible split": Fit(arrays, {"validation_split": 2}),
        "impossible size": Fit(arrays, {"batch_size": -1}),
        "validation is read once": Fit(data, {"validation_data": iter([odd])}),
        "empty validation": Fit(data, {"validation_data": (inputs[:0], targets[:0])}),
        "endless validation": Fit(data, {"validation_data": data.repeat()}),
        "no epoch": Fit(data, {"initial_epoch": 3, "epochs": 3}),
        "unsavable model": Fit(data, {"callbacks": [tf.keras.callbacks.ModelCheckpoint("best.keras")]}, Unsavable),
    }


def examine(strategy: Any, job: Fit) -> Any:
    """The preflight of a job."""
    with strategy.scope():
        made = job_models.dense()
        model = made if job.kind is None else job.kind(made.inputs, made.outputs)
        model = job_models.compiled("dense", model)
    return kdoctor.preflight(model, job.data, strategy, steps=2, fit_arguments=job.arguments)
