"""Objects with state during a training: the optimizer, a metric, a callback, accumulated gradients.

Measures: ``due`` and ``done`` of updates, steps and epochs, the expected and the counted numbers; ``metric`` and
``metric_reference``, the mean absolute error of the last epoch, on all replicas and on one device.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, STEPS, make_batches
from kdoctor_target.training.replicas import fit_reference, inspect_weights, make_model, make_strategy
from kdoctor_target.training.steps import clock

ACCUMULATED = 2


def adam(case: Case) -> None:
    """Adam, with two moments for each variable."""
    _train(case, tf.keras.optimizers.Adam, {"learning_rate": 0.01})


def momentum(case: Case) -> None:
    """SGD with momentum."""
    _train(case, tf.keras.optimizers.SGD, {"learning_rate": 0.05, "momentum": 0.9})


def accumulation(case: Case) -> None:
    """One update for the gradients of two steps."""
    if "gradient_accumulation_steps" not in inspect.signature(tf.keras.optimizers.SGD.__init__).parameters:
        case.skip("this Keras does not support gradient accumulation (gradient_accumulation_steps)")
    _train(
        case, tf.keras.optimizers.SGD, {"learning_rate": 0.1, "gradient_accumulation_steps": ACCUMULATED}, ACCUMULATED
    )


def _train(case: Case, make: Callable[..., Any], options: Dict[str, Any], steps_per_update: int = 1) -> None:
    strategy = make_strategy(case)
    batches = make_batches(strategy.num_replicas_in_sync)
    case.phase("reference")
    single = _compile(make(**options))
    reference = fit_reference(case, single, batches)
    case.phase("build")
    with strategy.scope():
        model = _compile(make(**options))
    counter = _Counter()
    case.note(optimizer=type(model.optimizer).__name__, **batches.facts())
    case.phase("data")
    watch = [counter, clock(case, tf.keras)]
    seen = model.fit(batches.dataset(), epochs=EPOCHS, verbose=0, shuffle=False, callbacks=watch).history
    case.note(losses=seen["loss"], steps=counter.steps)
    case.measure({"metric": seen["mae"][-1], "metric_reference": single.history.history["mae"][-1]})
    due = {"updates": EPOCHS * STEPS // steps_per_update, "steps": EPOCHS * STEPS, "epochs": EPOCHS}
    done = {"updates": int(np.asarray(model.optimizer.iterations)), "steps": counter.steps, "epochs": counter.epochs}
    case.measure({f"due {name}": number for name, number in due.items()})
    case.measure({f"done {name}": number for name, number in done.items()})
    inspect_weights(case, strategy, model, reference)


def _compile(optimizer: Any) -> Any:
    model = make_model()
    model.compile(optimizer=optimizer, loss="mean_squared_error", metrics=["mae"], jit_compile=False)
    return model


class _Counter(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types here
    """A callback with state."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.epochs = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        self.steps += 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        self.epochs += 1
