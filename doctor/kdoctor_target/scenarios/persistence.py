"""A model that was trained on all replicas and saved has the same weights wherever it is loaded.

Measures: ``variables``; ``equal on 1`` and so on, how many of them are bit-identical to the saved ones on every
replica when they are loaded on that many replicas.
"""

from __future__ import annotations

import contextlib
import shutil
from typing import Any, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, STEPS, Batches, Reference, make_batches
from kdoctor_target.training.replicas import inspect_weights, make_model, make_strategy, read_copies, train_mirrored
from kdoctor_target.training.steps import clock


def model_file(case: Case) -> None:
    """``Model.save`` on all replicas, ``load_model`` on one, on half and on all."""
    strategy, model = _trained(case)
    case.phase("save")
    path = str(case.file("model.keras"))
    model.save(path)
    _compare(case, strategy, model, lambda: tf.keras.models.load_model(path))


def weights_file(case: Case) -> None:
    """``save_weights`` on all replicas, ``load_weights`` on one, on half and on all."""
    strategy, model = _trained(case)
    case.phase("save")
    path = str(case.file("model.weights.h5"))
    model.save_weights(path)

    def load() -> Any:
        fresh = make_model(normalised=True)
        fresh.load_weights(path)
        return fresh

    _compare(case, strategy, model, load)


def backup_and_restore(case: Case) -> None:
    """A training that is interrupted and resumed by BackupAndRestore ends like an uninterrupted one."""
    strategy = make_strategy(case)
    batches = make_batches(strategy.num_replicas_in_sync)
    folder = str(case.file("backup"))
    uninterrupted = _fit(case, strategy, batches, [])
    reference = Reference(uninterrupted.history.history["loss"], uninterrupted.get_weights())
    case.note(reference_losses=reference.losses, **batches.facts())
    with contextlib.suppress(_PowerCut):
        _fit(case, strategy, batches, [tf.keras.callbacks.BackupAndRestore(folder), _Interrupt()])
    model = _fit(case, strategy, batches, [tf.keras.callbacks.BackupAndRestore(folder)])
    resumed = model.history.history["loss"]
    case.note(losses=resumed)
    case.measure({"epochs": EPOCHS + 1, "epochs_after": len(resumed)})
    inspect_weights(case, strategy, model, reference)
    shutil.rmtree(folder, ignore_errors=True)


def _trained(case: Case) -> Any:
    strategy = make_strategy(case)
    model = train_mirrored(case, strategy, make_batches(strategy.num_replicas_in_sync), normalised=True)
    inspect_weights(case, strategy, model)
    return strategy, model


def _fit(case: Case, strategy: Any, batches: Batches, callbacks: List[Any]) -> Any:
    case.phase("build")
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
        model.compile(optimizer=optimizer, loss="mean_squared_error", jit_compile=False)
    case.phase("data")
    watch = [*callbacks, clock(case, tf.keras)]
    model.fit(batches.dataset(), epochs=EPOCHS + 1, verbose=0, shuffle=False, callbacks=watch)
    return model


def _compare(case: Case, strategy: Any, model: Any, load: Any) -> None:
    case.phase("load")
    saved = model.get_weights()
    case.measure({"variables": len(saved)})
    devices = list(strategy.extended.worker_devices)
    for size in sorted({1, max(1, len(devices) // 2), len(devices)}):
        other = tf.distribute.MirroredStrategy(devices[:size])
        with other.scope():
            loaded = load()
        equal = [
            all(np.array_equal(weight, copy.numpy()) for copy in read_copies(other, variable))
            for variable, weight in zip(loaded.weights, saved)
        ]
        case.measure({f"equal on {size}": sum(equal)})


class _PowerCut(Exception):  # noqa: N818 - the event that is simulated
    """The training is interrupted."""


class _Interrupt(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types here
    """Interrupts the training in its second epoch."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        model: Any = self.model
        if model.optimizer.iterations.numpy() > STEPS + 1:
            raise _PowerCut
