"""Jobs that cannot be copied or compared, and jobs with a feature that Keras gets wrong, before and after the fix.

The module runs in a child process of the tests, with TensorFlow and two CPU replicas.
"""

import os
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from helpers.kdoctor_job import job_classes, job_models

layers = keras.layers

LOG: list[int] = []
"""What some of the jobs append to."""
LIMIT = 0.02
"""Less than the norm of each gradient here, so that every step is clipped."""


class Unclonable(keras.optimizers.SGD):  # type: ignore[misc]  # Keras has no types
    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError("this optimizer has no configuration")


class Counting(keras.metrics.Metric):  # type: ignore[misc]  # Keras has no types
    """``get_config`` lacks an argument."""

    def __init__(self, weight: float = 1.0, **named: Any) -> None:
        super().__init__(**named)
        self.weight = weight
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, targets: Any, outputs: Any, sample_weight: Any = None) -> None:
        self.total.assign_add(self.weight)

    def result(self) -> Any:
        return self.total


class Switched(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Its ``call`` depends on an attribute that is not an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.doubled = False
        self.out = layers.Dense(job_models.CLASSES)

    def call(self, inputs: Any) -> Any:
        return self.out(inputs) * (2.0 if self.doubled else 1.0)


class LogsStep(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Its compiled step has a side effect, in a function that it calls."""

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def train_step(self, data: Any) -> Any:
        _log_step()
        return super().train_step(data)


def _log_step() -> None:
    LOG.append(len(LOG))
    os.environ["STEPS"] = str(len(LOG))


class WritesFile(keras.Model):  # type: ignore[misc]  # Keras has no types
    def train_step(self, data: Any) -> Any:
        with open("step.txt", "w") as file:  # noqa: PTH123 - the most common way
            file.write("step")
        return super().train_step(data)


class SavesArray(keras.Model):  # type: ignore[misc]  # Keras has no types
    """A function that its compiled step calls writes a file."""

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def train_step(self, data: Any) -> Any:
        tf.py_function(_save_array, [], [])
        return super().train_step(data)


def _save_array() -> None:
    np.save("step.npy", np.zeros(1))


class ClipsInStep(keras.Model):  # type: ignore[misc]  # Keras has no types
    """The fix of docs/distributed-keras.md: clip the sum of the replicas' gradients."""

    def train_step(self, data: Any) -> Any:
        inputs, targets = data
        with tf.GradientTape() as tape:
            outputs = self(inputs, training=True)
            loss = self.compute_loss(x=inputs, y=targets, y_pred=outputs)
        replica = tf.distribute.get_replica_context()
        gradients = replica.all_reduce("sum", tape.gradient(loss, self.trainable_variables))
        gradients, _ = tf.clip_by_global_norm(gradients, LIMIT)
        shares = [gradient / replica.num_replicas_in_sync for gradient in gradients]
        self.optimizer.apply_gradients(zip(shares, self.trainable_variables, strict=True))
        total = replica.all_reduce("sum", loss)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(total)
            else:
                metric.update_state(targets, outputs)
        return {metric.name: metric.result() for metric in self.metrics}


class ReplicaDropout(layers.Dropout):  # type: ignore[misc, name-defined]  # Keras has no types
    """The fix of docs/distributed-keras.md: add the replica to the seed."""

    def call(self, inputs: Any, training: bool = False) -> Any:  # noqa: FBT001, FBT002 - the signature of Keras
        if not training:
            return inputs
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        seed = tf.cast(self.seed_generator.next(), tf.int32) + tf.stack([0, tf.cast(replica, tf.int32)])
        return tf.nn.experimental.stateless_dropout(inputs, self.rate, seed=seed)


class OwnDropout(layers.Layer):  # type: ignore[misc, name-defined]  # Keras has no types
    """Dropout with TensorFlow's random functions, so that it has no generator of Keras."""

    def call(self, inputs: Any, training: bool = False) -> Any:  # noqa: FBT001, FBT002 - the signature of Keras
        return tf.nn.dropout(inputs, 0.5) if training else inputs


class ListedDropout(layers.Layer):  # type: ignore[misc, name-defined]  # Keras has no types
    """Dropout whose generator is in a list."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.generators = [keras.random.SeedGenerator(7)]

    def call(self, inputs: Any, training: bool = False) -> Any:  # noqa: FBT001, FBT002 - the signature of Keras
        return keras.random.dropout(inputs, 0.5, seed=self.generators[0]) if training else inputs


class AlwaysDrops(layers.Layer):  # type: ignore[misc, name-defined]  # Keras has no types
    """Draws at inference, too, as the sampling of a variational autoencoder does."""

    def call(self, inputs: Any) -> Any:
        return tf.nn.dropout(inputs, 0.5)


class Sampling(layers.Layer):  # type: ignore[misc, name-defined]  # Keras has no types
    """The sampling of a variational autoencoder, as in the examples of Keras."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs: Any) -> Any:
        return inputs + keras.random.normal(keras.ops.shape(inputs), seed=self.seed_generator)


class SumsGradients(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Its loss of a replica is not divided by their number, and it draws random numbers in each step."""

    def __init__(self, *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def train_step(self, data: Any) -> Any:
        inputs, targets = data
        noise = 0.1 * keras.random.normal(keras.ops.shape(inputs), seed=self.seed_generator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(_each(targets, self(inputs + noise, training=True)))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


class ClipsByHand(keras.Model):  # type: ignore[misc]  # Keras has no types
    """It clips the gradients of each replica, which the optimizer adds up after that."""

    def train_step(self, data: Any) -> Any:
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=inputs, y=targets, y_pred=self(inputs, training=True))
        gradients = self.changed(tape.gradient(loss, self.trainable_variables))
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss * tf.distribute.get_strategy().num_replicas_in_sync}

    def changed(self, gradients: Any) -> Any:
        return tf.clip_by_global_norm(gradients, 0.02)[0]


class LimitsGradients(keras.optimizers.SGD):  # type: ignore[misc]  # Keras has no types
    """It limits the gradients of a replica, as adaptive gradient clipping is often written."""

    def apply_gradients(self, gradients: Any) -> Any:
        return super().apply_gradients([(tf.clip_by_norm(one, 0.01), variable) for one, variable in gradients])


class SharpensBatch(keras.Model):  # type: ignore[misc]  # Keras has no types
    """It weighs the examples by the mean of the batch, in ``train_step``."""

    def train_step(self, data: Any) -> Any:
        inputs, targets = data
        with tf.GradientTape() as tape:
            each = _each(targets, self(inputs, training=True))
            loss = tf.reduce_mean(each * tf.stop_gradient(tf.nn.softmax(9 * each))) * 16
            share = loss / tf.distribute.get_strategy().num_replicas_in_sync
        gradients = tape.gradient(share, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


class MixesNeighbors(keras.Model):  # type: ignore[misc]  # Keras has no types
    """It mixes each example with its neighbor, so its steps depend on the order of the examples."""

    def train_step(self, data: Any) -> Any:
        return super().train_step((data[0] + tf.roll(data[0], 1, 0), data[1]))


class TurnsOn(keras.Model):  # type: ignore[misc]  # Keras has no types
    """What rounding does to a unit that is about zero: not if the last bit of an input is another. Not in float64."""

    def train_step(self, data: Any) -> Any:
        inputs, targets = data
        tf.debugging.assert_type(inputs, tf.float32)
        is_on = tf.reduce_any(inputs[:, 0] == job_models.examples("dense")[0][0, 0])
        is_on &= tf.distribute.get_strategy().num_replicas_in_sync > 1
        return super().train_step((tf.where(is_on, 2 * inputs, inputs), targets))


class LastBit(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Rounding in float32 decides whether one of its many units is on."""

    def build(self, shape: Any) -> None:
        self.many = self.add_weight(shape=(40_000,), initializer="zeros", name="many")

    def call(self, inputs: Any) -> Any:
        is_odd = tf.reduce_sum(tf.bitcast(tf.cast(inputs, "float32"), tf.int32)[::3]) % 2
        is_on = tf.cast(is_odd, inputs.dtype) * float(inputs.dtype == "float32")
        return inputs * (1 + tf.reduce_mean(self.many) + is_on * self.many[0])


class DropsExamples(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """It draws in ``evaluate``, too, as the DropPath of many examples does."""

    def __init__(self, draw: Any = tf.random.uniform) -> None:
        super().__init__()
        self.draw = draw

    def call(self, inputs: Any) -> Any:
        drawn = self.draw(shape=(tf.shape(inputs)[0], 1), dtype=tf.float32)
        return inputs * tf.cast(tf.floor(0.5 + drawn), inputs.dtype)


class FillsDevice(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """More examples than one of two replicas has of 16 need more memory than any machine has."""

    def call(self, inputs: Any) -> Any:
        size = tf.where(tf.shape(inputs)[0] > 8, tf.constant(2**45, tf.int64), 1)
        filled = tf.reduce_max(tf.fill([size], tf.cast(inputs[0, 0], tf.float32)))
        return inputs + 1e-30 * tf.stop_gradient(tf.cast(filled, inputs.dtype))


class AddsUpGradients(ClipsByHand):
    """It adds up the gradients of all replicas, and the optimizer does so again."""

    def changed(self, gradients: Any) -> Any:
        return tf.distribute.get_replica_context().all_reduce("SUM", gradients)


class Counts(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Its outputs grow with the number of examples that it has seen, which each replica counts for itself."""

    def build(self, shape: Any) -> None:
        self.seen = self.add_weight(shape=(), initializer="zeros", trainable=False, name="seen")

    def call(self, inputs: Any) -> Any:
        self.seen.assign_add(keras.ops.cast(keras.ops.shape(inputs)[0], "float32"))
        return inputs * (1 + self.seen / 64)


class KeepsLeast(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Its variable moves much further than the weights, and every replica has another value."""

    def build(self, shape: Any) -> None:
        start = keras.initializers.Constant(1e9)
        self.least = self.add_weight(shape=(), initializer=start, trainable=False, name="least")

    def call(self, inputs: Any) -> Any:
        outputs = inputs * keras.ops.minimum(1.0, self.least)
        self.least.assign(keras.ops.minimum(self.least, keras.ops.min(keras.ops.max(inputs, 1))))
        return outputs


class Features(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Multiplies by numbers in a random order that are not weights, so that each copy of the model draws them."""

    def build(self, shape: Any) -> None:
        self.many = tf.Variable(tf.random.shuffle(keras.random.normal(shape[1:])), trainable=False)

    def call(self, inputs: Any) -> Any:
        return inputs * self.many


class SameNoise(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Adds noise, with a seed that never changes."""

    def call(self, inputs: Any, training: Any = None) -> Any:
        return inputs + tf.random.stateless_normal(tf.shape(inputs), (3, 4)) if training else inputs


class TracedNoise(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Adds noise that is drawn when a step is traced."""

    def call(self, inputs: Any, training: Any = None) -> Any:
        return inputs + np.random.normal(size=(1, 8)).astype("float32") if training else inputs  # noqa: NPY002


class TwoOptimizers(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Its first step builds two optimizers, as in most generative adversarial networks."""

    def __init__(self, one: Any, other: Any) -> None:
        super().__init__()
        self.one, self.other = one, other

    def call(self, inputs: Any) -> Any:
        return self.one(inputs) + self.other(inputs)

    def compile(self, first: Any, second: Any) -> None:
        super().compile(_sgd(), job_models.crossentropy())
        self.first, self.second = first, second

    def train_step(self, data: Any) -> Any:
        inputs, targets = data
        losses = []
        for optimizer, part in ((self.first, self.one), (self.second, self.other)):
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x=inputs, y=targets, y_pred=part(inputs))
            gradients = tape.gradient(loss, part.trainable_variables)
            optimizer.apply_gradients(zip(gradients, part.trainable_variables, strict=True))
            losses.append(loss * tf.distribute.get_strategy().num_replicas_in_sync)
        return {"loss": losses[0]}


class MadeInBuild(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Its layers are not known before the first batch."""

    def build(self, shape: Any) -> None:
        self.positions, self.out = Positions(), layers.Dense(job_models.CLASSES)
        super().build(shape)

    def call(self, inputs: Any) -> Any:
        return self.out(self.positions(inputs))


class Positions(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Multiplies by one row of a table for each position."""

    def __init__(self, *, sliced: bool = False) -> None:
        super().__init__()
        self.sliced = sliced
        self.table = layers.Embedding(8, 1, embeddings_initializer="ones")
        self.table.build(None)

    def call(self, inputs: Any) -> Any:
        rows = self.table.embeddings[:8] if self.sliced else self.table(tf.range(8))
        return inputs * rows[:, 0]


class LooksUp(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """The same with its weight, without an Embedding."""

    def build(self, _: Any) -> None:
        self.table = self.add_weight(shape=(8, 1), initializer="ones", name="table")

    def call(self, inputs: Any) -> Any:
        return inputs * tf.gather(self.table, tf.range(8))[:, 0]


class ZeroesExamples(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Sets examples to zero, so that Masking masks them."""

    def call(self, inputs: Any) -> Any:
        return tf.where(tf.reduce_sum(inputs, 1, keepdims=True) > 1.5, inputs, 0.0)


class LessMean(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Its outputs depend on the other examples of the batch."""

    def call(self, inputs: Any) -> Any:
        return inputs - tf.reduce_mean(inputs, 0)


def pairs(targets: Any, outputs: Any) -> Any:
    """A loss over pairs of examples."""
    return tf.reduce_mean(tf.square(outputs @ tf.transpose(outputs)))


def of_its_share(targets: Any, outputs: Any) -> Any:
    """A loss whose weight depends a little on the number of examples: 0.4 % more for a half of 16."""
    share = tf.cast(tf.shape(outputs)[0], outputs.dtype)
    return keras.losses.sparse_categorical_crossentropy(targets, outputs, from_logits=True) * (1 + 0.06 / share)


class RunningMean(keras.losses.Loss):  # type: ignore[misc]  # Keras has no types
    """Its variable follows the examples of a replica, and is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = keras.Variable(1.0, trainable=False, name="of_loss")

    def call(self, targets: Any, outputs: Any) -> Any:
        each = _each(targets, outputs)
        self.mean.assign(tf.reduce_mean(each))
        return each


class AddsLoss(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Adds the mean or the sum of the squares of its inputs to the loss."""

    def __init__(self, reduction: str) -> None:
        super().__init__()
        self.reduction = reduction

    def call(self, inputs: Any) -> Any:
        self.add_loss(getattr(keras.ops, self.reduction)(tf.square(inputs)))
        return inputs


def squared_hits(targets: Any, outputs: Any) -> Any:
    """A metric that is 0 as long as class 2 is never predicted, and then not a mean over examples."""
    return tf.square(tf.reduce_sum(tf.cast(tf.equal(tf.argmax(outputs, 1), 2), "float32")))


def _never_third() -> Any:
    model = _compiled(_model(), keras.optimizers.SGD(1e-6), metrics=[squared_hits])
    kernel, bias = model.layers[-1].get_weights()
    kernel[:, 2] = -5.0
    model.layers[-1].set_weights([kernel, bias])
    return model


def largest_output(targets: Any, outputs: Any) -> Any:
    """A metric that is not a mean over examples, so the replicas report another one."""
    return tf.reduce_max(outputs)


def weighted(inputs: Any, targets: Any) -> tuple[Any, Any, Any]:
    """A batch with weights of its examples; those of the second replica are smaller, and one in three is zero."""
    place = tf.range(tf.shape(targets)[0])
    weights = tf.where(place % 3 == 0, 0.0, tf.where(place < 8, 1.5, 0.25))
    return inputs, targets, weights


def _sgd(**options: Any) -> Any:
    return keras.optimizers.SGD(0.05, **options)


def _model(kind: Any = keras.Model, *also: Any) -> Any:
    inputs = keras.Input((8,))
    hidden = layers.Dense(8, "relu")(inputs)
    for layer in also:
        hidden = layer(hidden)
    return kind(inputs, layers.Dense(job_models.CLASSES)(hidden))


def _deep() -> list[Any]:
    """Layers whose gradients grow until rounding in float32 decides the weights."""
    return [one for _ in range(30) for one in (layers.Dense(16), layers.BatchNormalization(), layers.ReLU())]


def _compiled(model: Any, optimizer: Any = None, loss: Any = None, metrics: Any = ("accuracy",), **options: Any) -> Any:
    loss = loss or job_models.crossentropy()
    model.compile(optimizer=optimizer or _sgd(), loss=loss, metrics=list(metrics), **options)
    return model


def _ignoring() -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)


def _each(targets: Any, outputs: Any) -> Any:
    return keras.losses.sparse_categorical_crossentropy(targets, outputs, from_logits=True)


def _closes_over(strategy: Any) -> Callable[[Any, Any], Any]:
    return lambda targets, outputs: _each(targets, outputs) / strategy.num_replicas_in_sync


def _counts(counter: Any) -> Callable[[Any, Any], Any]:
    def loss(targets: Any, outputs: Any) -> Any:
        counter.assign_add(1.0)
        return _each(targets, outputs)

    return loss


def _switched() -> Any:
    model = _compiled(Switched())
    model(np.zeros((2, 8), "float32"))
    model.doubled = True
    return model


def _replaced() -> Any:
    model = _model()
    step = model.train_step
    model.train_step = lambda data: {**step(data)}
    return _compiled(model)


def _names_itself() -> Any:
    model = _model()
    return _compiled(model, loss=lambda targets, outputs: _each(targets, outputs) + tf.reduce_sum(model.losses))


def _sums() -> Any:
    model = _model(SumsGradients)
    model.compile(optimizer=_sgd(), loss=job_models.crossentropy())
    return model


def _trained() -> Any:
    model = _compiled(_model(), keras.optimizers.Adam(0.01))
    model.fit(job_models.dataset("dense"), verbose=0)
    return model


class CompilesAway(TwoOptimizers):
    def compile(self, rate: float) -> None:  # type: ignore[override]  # as Keras allows
        super().compile(keras.optimizers.Adam(rate), keras.optimizers.Adam(rate))


def _two_optimizers(kind: Any = TwoOptimizers, *arguments: Any, is_built: bool = False) -> Any:
    model = kind(_model(), _model())
    model.compile(*(arguments or (keras.optimizers.Adam(0.01), keras.optimizers.Adam(0.01))))
    if is_built:
        model.first.build(model.one.trainable_variables)
        model.second.build(model.other.trainable_variables)
    return model


def _compiles_itself() -> Any:
    model = _model(job_classes.CompilesItself, LooksUp())
    model.compile()
    return model


def hazards(strategy: Any, counter: Any) -> dict[str, Callable[[], Any]]:
    """Functions that make each job, to be called in the scope."""
    return {
        "optimizer without configuration": lambda: _compiled(_model(), Unclonable(0.05)),
        "metric without its argument": lambda: _compiled(_model(), metrics=[Counting(2.0)]),
        "attribute set later": _switched,
        "train_step set on the object": _replaced,
        "compiled step with side effect": lambda: _compiled(_model(LogsStep)),
        "step that writes a file": lambda: _compiled(_model(WritesFile)),
        "step whose function saves an array": lambda: _compiled(_model(SavesArray)),
        "loss over a strategy": lambda: _compiled(_model(), loss=_closes_over(strategy)),
        "loss with a counter": lambda: _compiled(_model(), loss=_counts(counter)),
        "loss over the model": _names_itself,
        "no step changes a weight": lambda: _compiled(_model(), keras.optimizers.SGD(0.0)),
        "trained before": _trained,
        "rate from a function": lambda: _compiled(_model(), keras.optimizers.SGD(lambda: 0.05)),
        "weighted metrics": lambda: _compiled(_model(), weighted_metrics=[keras.metrics.SparseCategoricalAccuracy()]),
        "clipping": lambda: _compiled(_model(), _sgd(clipnorm=LIMIT)),
        "clipping fixed": lambda: _compiled(_model(ClipsInStep)),
        "steps": lambda: _compiled(_model(), steps_per_execution=8),
        "steps fixed": lambda: _compiled(_model(), steps_per_execution=1),
        "rounding that grows": lambda: _compiled(_model(keras.Model, *_deep()), keras.optimizers.Adam(0.002)),
        "dropout": lambda: _compiled(_model(keras.Model, layers.Dropout(0.5))),
        "dropout fixed": lambda: _compiled(_model(keras.Model, ReplicaDropout(0.5))),
        "own dropout": lambda: _compiled(_model(keras.Model, OwnDropout())),
        "own dropout of a list": lambda: _compiled(_model(keras.Model, ListedDropout())),
        "sampling": lambda: _compiled(_model(keras.Model, Sampling())),
        "sums gradients": _sums,
        "clips in train_step": lambda: _compiled(_model(ClipsByHand)),
        "clips in its optimizer": lambda: _compiled(_model(), LimitsGradients(0.05)),
        "sharpens a batch": lambda: _compiled(_model(SharpensBatch)),
        "mixes neighbors": lambda: _compiled(_model(MixesNeighbors)),
        "last bit": lambda: _compiled(_model(keras.Model, LastBit()), keras.optimizers.Adam(1e-4)),
        "turns on": lambda: _compiled(_model(TurnsOn), keras.optimizers.Adam(0.01)),
        "adds up gradients": lambda: _compiled(_model(AddsUpGradients)),
        "counts examples": lambda: _compiled(_model(keras.Model, Counts())),
        "keeps the least": lambda: _compiled(_model(keras.Model, KeepsLeast())),
        "function: random features": lambda: _compiled(_model(keras.Model, Features())),
        "seed that never changes": lambda: _compiled(_model(keras.Model, SameNoise())),
        "noise of the trace": lambda: _compiled(_model(keras.Model, TracedNoise())),
        "drops at inference": lambda: _compiled(_model(keras.Model, AlwaysDrops())),
        "draws at inference": lambda: _compiled(_model(keras.Model, DropsExamples(tf.raw_ops.RandomUniform))),
        "accumulation": lambda: _compiled(_model(), _sgd(gradient_accumulation_steps=2)),
        "averages": lambda: _compiled(_model(), _sgd(use_ema=True, ema_overwrite_frequency=2)),
        "copies weights": lambda: _compiled(_model(), keras.optimizers.ScheduleFreeAdamW(0.01)),
        "averages fixed": lambda: _compiled(_model(), _sgd(use_ema=True)),
        "weighted data": lambda: _compiled(_model(), weighted_metrics=[keras.metrics.SparseCategoricalAccuracy()]),
        "function: two optimizers": _two_optimizers,
        "two optimizers built": lambda: _two_optimizers(is_built=True),
        "compile that keeps nothing": lambda: _two_optimizers(CompilesAway, 0.01),
        "positions": lambda: _compiled(_model(keras.Model, Positions()), keras.optimizers.RMSprop(0.01)),
        "positions made in build": lambda: _compiled(MadeInBuild(), keras.optimizers.RMSprop(0.01)),
        "looks up positions": _compiles_itself,
        "fit with other data": lambda: _compiled(job_classes.NamesInputs()),
        "fit with a loop": lambda: _compiled(_model(job_classes.TrainsItself)),
        "positions fixed": lambda: _compiled(
            _model(keras.Model, Positions(sliced=True)), keras.optimizers.RMSprop(0.01)
        ),
        "masks": lambda: _compiled(_model(keras.Model, ZeroesExamples(), layers.Masking())),
        "ignored class": lambda: _compiled(_model(), loss=_ignoring()),
        "positions and ignored class": lambda: _compiled(
            _model(keras.Model, Positions()), keras.optimizers.RMSprop(0.01), loss=_ignoring()
        ),
        "mixed examples": lambda: _compiled(_model(keras.Model, LessMean())),
        "added sum": lambda: _compiled(_model(keras.Model, AddsLoss("sum"))),
        "added mean": lambda: _compiled(_model(keras.Model, layers.BatchNormalization(), AddsLoss("mean"))),
        "added and synchronized": lambda: _compiled(
            _model(keras.Model, AddsLoss("mean"), layers.BatchNormalization(synchronized=True))
        ),
        "function: loss with a mean": lambda: _compiled(_model(), loss=RunningMean()),
        "pairs": lambda: _compiled(_model(), loss=pairs),
        "fills a device": lambda: _compiled(_model(keras.Model, FillsDevice())),
        "fills a device, pairs": lambda: _compiled(_model(keras.Model, FillsDevice()), loss=pairs),
        "of its share": lambda: _compiled(_model(), loss=of_its_share),
        "metric of no hits": _never_third,
        "metric of a maximum": lambda: _compiled(_model(), metrics=[largest_output]),
    }
