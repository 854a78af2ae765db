"""The jobs of ``benchmarks.restore_trials``."""
# ruff: noqa: D102, D103 - the names say it

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

C: Any = keras.callbacks
NUMBERS = np.random.default_rng(1).normal(size=(256, 4)).astype("float32")


def arrays() -> Any:
    return NUMBERS[:64], NUMBERS[:64, :1]


def batches() -> Any:
    return tf.data.Dataset.from_tensor_slices(arrays()).batch(16)


def unpaired() -> Any:
    """Batches whose parts differ in size, and are cut each by itself."""
    parts = [tf.data.Dataset.from_tensor_slices(NUMBERS[:rows]).batch(rows // 4) for rows in (32, 128)]
    return tf.data.Dataset.zip(tuple(parts)).map(lambda few, many: ((few, many), few[:, :1]))


def growing() -> Any:
    """Batches of 8 and of 16 examples, as buckets by length make them."""
    few, many = (tf.data.Dataset.from_tensor_slices(NUMBERS[:64]).batch(rows) for rows in (8, 16))
    return few.take(2).concatenate(many.skip(1)).map(lambda inputs: (inputs, inputs[:, :1]))


def shuffled() -> Any:
    return tf.data.Dataset.from_tensor_slices(arrays()).shuffle(64).batch(16)


def shuffled_more() -> Any:
    """An epoch has more batches than the examination."""
    return tf.data.Dataset.from_tensor_slices((NUMBERS, NUMBERS[:, :1])).shuffle(256).batch(16)


def generator() -> Iterator[Any]:
    for start in range(0, 256, 16):
        yield NUMBERS[start : start + 16], NUMBERS[start : start + 16, :1]


def generator_without_end() -> Iterator[Any]:
    while True:
        yield from generator()


def endless() -> Any:
    return tf.data.Dataset.from_tensor_slices((NUMBERS, NUMBERS[:, :1])).batch(16).repeat()


def skipping(folder: str = "/data") -> Any:
    """Data that begins where the backup was."""
    place = Path(folder, "backup", "training_metadata.json")
    epochs = json.loads(place.read_text())["epoch"] if place.exists() else 0
    return endless().skip(4 * epochs)


def _build(*layers: Any, optimizer: Any = "adam") -> Any:
    model = keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    return model


def plain() -> Any:
    return _build(keras.layers.Dense(4))


def two_inputs() -> Any:
    few, many = keras.Input((4,)), keras.Input((4,))
    mean = keras.ops.mean(keras.layers.Dense(1)(many), axis=0, keepdims=True)
    model = keras.Model([few, many], keras.layers.Dense(1)(few) + mean)
    model.compile("adam", "mse")
    return model


def random() -> Any:
    return _build(keras.layers.Dense(4), keras.layers.BatchNormalization(), keras.layers.Dropout(0.3))


class Alternating(keras.Model):  # type: ignore[misc]
    """A part and an optimizer for each of two losses, as a GAN; ``compile`` gets none."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = [keras.layers.Dense(1), keras.layers.Dense(1)]
        self.own = {name: keras.optimizers.Adam(0.01) for name in ("first", "second")}
        for part, optimizer in zip(self.parts, self.own.values(), strict=True):
            part.build((None, 4))
            optimizer.build(part.trainable_variables)
        self.built = True
        self.compile()

    def call(self, inputs: Any) -> Any:
        return self.parts[0](inputs) + self.parts[1](inputs)

    def train_step(self, data: Any) -> Any:
        for part, optimizer in zip(self.parts, self.own.values(), strict=True):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(data[0]) - data[1]) ** 2)
            optimizer.apply(tape.gradient(loss, part.trainable_variables), part.trainable_variables)
        return {"loss": loss}


def alternating() -> Any:
    return Alternating()


def averaged() -> Any:
    return _build(optimizer=keras.optimizers.Adam(0.01, use_ema=True))


def scheduled() -> Any:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 4, 0.5)
    return _build(optimizer=keras.optimizers.SGD(schedule, momentum=0.9))


def mixed() -> Any:
    keras.config.set_dtype_policy("mixed_float16")
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(), initial_scale=4.0, dynamic_growth_steps=2)
    return _build(keras.layers.Dense(4), optimizer=optimizer)


def once(folder: str = "/data") -> Any:
    return {"callbacks": [C.BackupAndRestore(f"{folder}/backup")]}


def twice(folder: str = "/data") -> Any:
    return {"callbacks": [C.BackupAndRestore(f"{folder}/backup", double_checkpoint=True)]}


def in_the_middle(folder: str = "/data") -> Any:
    return {"callbacks": [C.BackupAndRestore(f"{folder}/backup", save_freq=3, double_checkpoint=True)]}


def endless_arguments(folder: str = "/data") -> Any:
    return {**twice(folder), "steps_per_epoch": 4}


def rate(folder: str = "/data") -> Any:
    return {"callbacks": [*twice(folder)["callbacks"], C.LearningRateScheduler(lambda epoch, _: 0.1 / (epoch + 1))]}


def numbered(folder: str = "/data") -> Any:
    return {"callbacks": [C.ModelCheckpoint(folder + "/{epoch:03d}.keras")]}


def one_file(folder: str = "/data") -> Any:
    return {"callbacks": [C.ModelCheckpoint(f"{folder}/model.keras")]}


def numbered_and_backup(folder: str = "/data") -> Any:
    return {"callbacks": [*numbered(folder)["callbacks"], *once(folder)["callbacks"]]}


def weights(folder: str = "/data") -> Any:
    return {"callbacks": [C.ModelCheckpoint(folder + "/{epoch:03d}.weights.h5", save_weights_only=True)]}


def several(folder: str = "/data") -> Any:
    others = [
        C.EarlyStopping("loss", patience=5),
        C.ReduceLROnPlateau("loss"),
        C.CSVLogger(f"{folder}/log", append=True),
    ]
    return {"callbacks": [*twice(folder)["callbacks"], *others]}


class Counting(C.Callback):  # type: ignore[misc]
    """A callback that forgets how much it has seen."""

    seen = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        self.seen += 1


def counts(folder: str = "/data") -> Any:
    return {"callbacks": [Counting(), *twice(folder)["callbacks"]]}


class Checkpoint(C.Callback):  # type: ignore[misc]
    """``tf.train.Checkpoint`` of all variables but those with this text in their path, or of this optimizer."""

    def __init__(self, folder: str, left_out: str) -> None:
        super().__init__()
        self._folder = folder
        self._left_out = left_out

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        model, self._epochs = self.model, tf.Variable(0)
        optimizers = getattr(model, "own", {"only": model.optimizer})
        if len(optimizers) == 1:
            model.optimizer.build(model.trainable_variables)
        kept = [one for name, one in optimizers.items() if name != self._left_out]
        variables = (*model.weights, *(variable for one in kept for variable in one.variables))
        saved = {one.path: one.value for one in variables if self._left_out not in one.path}
        checkpoint = tf.train.Checkpoint(epochs=self._epochs, saved=saved)
        self._manager = tf.train.CheckpointManager(checkpoint, f"{self._folder}/checkpoints", 3)
        if self._manager.restore_or_initialize():
            model._initial_epoch = int(self._epochs)  # noqa: SLF001 - as BackupAndRestore does

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._epochs.assign(epoch + 1)
        self._manager.save()


def checkpoint(folder: str = "/data") -> Any:
    return {"callbacks": [Checkpoint(folder, "nothing")]}


class Threaded(Checkpoint):
    """Saves while the training goes on."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._epochs.assign(epoch + 1)
        threading.Timer(0.3, self._manager.save).start()


def in_a_thread(folder: str = "/data") -> Any:
    return {"callbacks": [Threaded(folder, "nothing")]}


def without_second(folder: str = "/data") -> Any:
    return {"callbacks": [Checkpoint(folder, "second")]}


def without_optimizer(folder: str = "/data") -> Any:
    return {"callbacks": [Checkpoint(folder, "adam")]}


def without_average(folder: str = "/data") -> Any:
    return {"callbacks": [Checkpoint(folder, "average")]}


def without_scale(folder: str = "/data") -> Any:
    return {"callbacks": [Checkpoint(folder, "dynamic_scale")]}


class Generators(C.BackupAndRestore):  # type: ignore[misc]
    """Saves the states of random number generators, too."""

    def _states(self) -> list[Any]:
        return [one for one in self.model.variables if one.path.endswith("seed_generator_state")]

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        place = Path(self.backup_dir, "generators.npy")
        for one, value in zip(self._states(), np.load(place) if place.exists() else (), strict=False):
            one.assign(value)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        np.save(Path(self.backup_dir, "generators.npy"), [one.numpy() for one in self._states()])


def generators_saved(folder: str = "/data") -> Any:
    return {"callbacks": [Generators(f"{folder}/backup", double_checkpoint=True)]}
