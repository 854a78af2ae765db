"""Weighted, regularized and custom losses over several replicas, compared with one device."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import History, Job, compare, fit, model_of
from kdoctor_target.training.regression import FEATURES, PER_REPLICA, STEPS, Batches, dense_model, make_batches
from kdoctor_target.training.replicas import make_model
from kdoctor_target.training.seeded import OUTPUTS, TOKENS, dense, embedding, tokens, two_outputs, two_targets

CLASSES = 3
IS_KERAS_3 = hasattr(tf.keras, "random")


def sample_weight(case: Case) -> None:
    """Different weights for the examples; those of the last replica are all zero."""

    def data(replicas: int) -> Batches:
        batches = make_batches(replicas)
        weights = np.random.RandomState(5).uniform(0.0, 2.0, len(batches.inputs)).astype("float32")
        places: Any = np.arange(len(weights)) % batches.global_batch
        weights[places >= batches.global_batch - PER_REPLICA] = 0.0
        return batches._replace(sample_weights=weights)

    compare(case, Job(compile=lambda: {"weighted_metrics": ["mae"]}, data=data))


def class_weight(case: Case) -> None:
    """Different weights for the classes."""

    def data(replicas: int) -> Batches:
        batches = make_batches(replicas)
        return batches._replace(targets=np.argmax(batches.inputs[:, :CLASSES], axis=1))

    def weigh(model: Any, batches: Batches) -> History:
        return fit(model, batches, class_weight={0: 1.0, 1: 3.0, 2: 0.5})

    job = Job(
        model=lambda: dense_model(tf.keras, outputs=CLASSES, activation="softmax"),
        compile=lambda: {"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]},
        fit=weigh,
        data=data,
    )
    compare(case, job)


def regularizers(case: Case) -> None:
    """L1 and L2 of the weights, and a loss of a layer (``add_loss``)."""
    compare(case, Job(model=_regularized))


def loss_object_in_layer(case: Case) -> None:
    """The same, if the layer computes its loss with a loss object of Keras."""
    compare(case, Job(model=lambda: _regularized(tf.keras.losses.MeanSquaredError())))


def added_loss_synchronized(case: Case) -> None:
    """A layer that adds to the loss before synchronized BatchNormalization."""
    compare(case, Job(model=lambda: _normalized(Penalty())))


def penalty_in_loss(case: Case) -> None:
    """The alternative: what is penalized is a part of the output, and the loss penalizes it."""

    def loss(targets: Any, predictions: Any) -> Any:
        errors = tf.square(predictions[:, :1] - targets)[:, 0]
        return errors + 0.1 * tf.reduce_mean(tf.square(predictions[:, 1:]), axis=1)

    compare(case, Job(model=lambda: _normalized(None), compile=lambda: {"loss": loss}))


def outputs(case: Case) -> None:
    """Two inputs, and two outputs with loss weights."""
    compare(case, Job(model=lambda: two_outputs(tf.keras), compile=lambda: OUTPUTS, data=two_targets))


def run_eagerly(case: Case) -> None:
    """Steps that are not compiled."""
    compare(case, Job(compile=lambda: {"run_eagerly": True}, fit=lambda model, data: fit(model, data, epochs=1)))


def train_step(case: Case) -> None:
    """A custom ``train_step`` that adds up the losses of the replicas before it reports them."""
    compare(case, Job(model=model_of(SumsLoss)))


def train_step_of_guide(case: Case) -> None:
    """A custom ``train_step`` that reports the loss as Keras's guide does."""
    compare(case, Job(model=model_of(TrainStep)))


def model_without_call(case: Case) -> None:
    """A model that trains a network in ``train_step``, and has no ``call``."""
    compare(case, Job(model=WithoutCall))


def unseeded_random(case: Case) -> None:
    """A layer that draws random numbers without a seed."""
    compare(case, Job(model=lambda: _drawing(None)))


def seeded_random(case: Case) -> None:
    """The alternative: draw them with a generator that the layer makes."""
    compare(case, Job(model=lambda: _drawing(tf.keras.random.SeedGenerator(7) if IS_KERAS_3 else 7)))


def scalar_loss(case: Case) -> None:
    """A loss function that returns one number for the batch."""
    compare(case, Job(compile=lambda: {"loss": _mean_of_batch}))


def scalar_loss_repeated(case: Case) -> None:
    """The alternative: return that number for each example."""

    def repeated(targets: Any, predictions: Any) -> Any:
        return _mean_of_batch(targets, predictions) * tf.ones(tf.shape(targets)[:1])

    compare(case, Job(compile=lambda: {"loss": repeated}))


def masked_loss(case: Case) -> None:
    """A loss for each token, without those that the Embedding layer masks."""
    compare(case, _tagger(masked=True))


def token_weights(case: Case) -> None:
    """The alternative: a mask of weights for the tokens."""
    compare(case, _tagger(masked=False))


def _mean_of_batch(targets: Any, predictions: Any) -> Any:
    return tf.reduce_mean(tf.square(targets - predictions))


class Penalty(tf.keras.layers.Layer):  # type: ignore[misc]  # TensorFlow has no types here
    """Adds the mean square of its inputs to the loss."""

    def __init__(self, mean_square: Callable[[Any, Any], Any] = _mean_of_batch) -> None:
        super().__init__()
        self.mean_square = mean_square

    def call(self, inputs: Any) -> Any:
        """The inputs."""
        self.add_loss(0.1 * self.mean_square(tf.zeros_like(inputs), inputs))
        return inputs


def _regularized(mean_square: Callable[[Any, Any], Any] = _mean_of_batch) -> Any:
    options = {"kernel_regularizer": tf.keras.regularizers.L1L2(0.01, 0.02)}
    hidden = dense(tf.keras, 8, 1, activation="tanh", **options)
    last = dense(tf.keras, 1, 2, **options)
    return tf.keras.Sequential([tf.keras.Input((FEATURES,)), hidden, Penalty(mean_square), last])


def _normalized(penalty: Optional[Penalty]) -> Any:
    inputs = tf.keras.Input((FEATURES,))
    hidden = dense(tf.keras, 8, 1)(inputs)
    layer = tf.keras.layers.BatchNormalization(synchronized=True)
    last = dense(tf.keras, 1, 2)(layer(penalty(hidden) if penalty else hidden))
    return tf.keras.Model(inputs, last if penalty else tf.keras.layers.Concatenate()([last, hidden]))


class TrainStep(tf.keras.Model):  # type: ignore[misc]  # TensorFlow has no types here
    """The train_step of https://keras.io/guides/custom_train_step_in_tensorflow/."""

    def train_step(self, data: Any) -> Any:
        """One step of each replica."""
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss: Any = self.compute_loss(x=inputs, y=targets, y_pred=self.outputs_of(inputs))
        gradients = tape.gradient(loss, self.trainable_variables)
        optimizer: Any = self.optimizer
        optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        if IS_KERAS_3:  # in Keras 2 compute_loss reports the loss
            for metric in self.metrics:  # the loss only: the model has no other metrics
                metric.update_state(self.reported(loss))
        return {metric.name: metric.result() for metric in self.metrics}

    def outputs_of(self, inputs: Any) -> Any:
        """The outputs for a batch."""
        return self(inputs, training=True)

    def reported(self, loss: Any) -> Any:
        """The loss that the model reports for a step."""
        return loss


class SumsLoss(TrainStep):
    """Reports the loss of the global batch."""

    def reported(self, loss: Any) -> Any:
        """The sum of the replicas' losses, each of which is divided by the number of replicas."""
        return tf.distribute.get_replica_context().all_reduce("sum", loss)


class Draws(tf.keras.layers.Layer):  # type: ignore[misc]  # TensorFlow has no types here
    """Draws random numbers, and does not use them: so the weights can be compared."""

    def __init__(self, seed: Any) -> None:
        super().__init__()
        self.seed = seed

    def call(self, inputs: Any) -> Any:
        """Its inputs."""
        draw = tf.keras.random.normal if IS_KERAS_3 else tf.random.normal
        return inputs + 0.0 * draw(tf.shape(inputs), seed=self.seed)


def _drawing(seed: Any) -> Any:
    return tf.keras.Sequential([tf.keras.layers.InputLayer((FEATURES,)), Draws(seed), *make_model().layers])


class WithoutCall(SumsLoss):
    """Trains its network, as a VAE or a GAN of keras.io trains its networks."""

    def __init__(self) -> None:
        super().__init__()
        self.network = make_model()

    def outputs_of(self, inputs: Any) -> Any:
        """The outputs of the network; the model cannot be called."""
        return self.network(inputs, training=True)


def _tagger(*, masked: bool) -> Job:
    """A model that classifies each token of sequences of different lengths, with a mask or with weights."""

    def data(replicas: int) -> Batches:
        sequences = tokens(STEPS * PER_REPLICA * replicas)
        weights = None if masked else (sequences != 0).astype("float32")
        return Batches(sequences, (sequences % CLASSES)[:, :, None], PER_REPLICA * replicas, sample_weights=weights)

    def model() -> Any:
        last = dense(tf.keras, CLASSES, 2, activation="softmax")
        return tf.keras.Sequential(
            [tf.keras.Input((TOKENS,), dtype="int32"), embedding(tf.keras, 8, masked=masked), last]
        )

    options: Dict[str, Any] = {"loss": "sparse_categorical_crossentropy"}
    return Job(model=model, compile=lambda: options, data=data)
