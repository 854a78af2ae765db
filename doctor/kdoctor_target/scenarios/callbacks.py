"""Callbacks that decide during a training, compared with one device: learning rate, best epoch, saved weights.

Each is reported by the history as a value, so that it becomes a ``metric`` and a ``reference`` measure.
"""

from __future__ import annotations

from typing import Any, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import History, Job, compare, fit
from kdoctor_target.training.regression import Batches
from kdoctor_target.training.replicas import make_model

EPOCHS = 5
HALF_WAY = 0.4
"""The validation targets are this part of the targets. The training passes them, so an epoch in the middle is best."""


def learning_rate(case: Case) -> None:
    """LearningRateScheduler, then ReduceLROnPlateau."""

    def train(model: Any, batches: Batches) -> History:
        callbacks = tf.keras.callbacks
        halve = callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5 if epoch == 1 else rate)
        plateau = callbacks.ReduceLROnPlateau(monitor="loss", factor=0.1, patience=1, min_delta=0.2, min_lr=1e-4)
        history = fit(model, batches, epochs=EPOCHS, callbacks=[halve, plateau])
        rates = history.get("learning_rate") or history["lr"]
        return {
            "loss": history["loss"],
            **{f"learning_rate of epoch {index}": [rate] for index, rate in enumerate(rates)},
        }

    compare(case, Job(fit=train))


def best_epoch(case: Case) -> None:
    """EarlyStopping restores the weights of the best epoch, and ModelCheckpoint saves the same."""

    def train(model: Any, batches: Batches) -> History:
        callbacks = tf.keras.callbacks
        path = str(case.file("weights.h5"))
        early: Any = callbacks.EarlyStopping(monitor="val_loss", patience=1, restore_best_weights=True)
        save = callbacks.ModelCheckpoint(path, monitor="val_loss", save_best_only=True, save_weights_only=True)
        checked = batches._replace(targets=HALF_WAY * batches.targets).dataset()
        history = fit(model, batches, epochs=EPOCHS, callbacks=[early, save], validation_data=checked)
        saved = make_model()
        saved.load_weights(path)
        apart: List[Any] = [np.max(np.abs(one - other)) for one, other in zip(saved.get_weights(), model.get_weights())]
        chosen = {"best epoch": early.best_epoch, "epochs": len(history["loss"]), "saved weights": max(apart)}
        return {**history, **{name: [float(value)] for name, value in chosen.items()}}

    compare(case, Job(fit=train))
