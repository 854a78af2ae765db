"""Two trainings with the same seed, and the cost of op determinism.

Measures of ``seed`` and ``op-determinism``: ``difference``, the largest difference of any weight between the two
trainings; ``difference of <variable>`` for each variable that differs; ``first_step_apart``, the first step whose
losses differ, if there is one; ``cost``, the time of a step with ``enable_op_determinism``, as a multiple of the time
without.

Measures of ``operations``, for each operation that may be nondeterministic: ``<operation>: difference``, the largest
difference between runs on the same numbers; ``<operation>: difference insisting``, the same with op determinism;
``<operation>: cost``, as above; ``<operation>: refused``, 1 if TensorFlow then refuses the operation.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.operations import operations, random_numbers_in_a_map
from kdoctor_target.training.regression import EPOCHS, FEATURES, LEARNING_RATE, make_batches
from kdoctor_target.training.replicas import inspect_weights, make_strategy, replica_devices
from kdoctor_target.training.steps import clock
from kdoctor_target.training.timing import fastest_seconds, fit_step_seconds

SEED = 7
RUNS = 5
"""Runs of each operation that are compared."""


class _Training(NamedTuple):
    model: Any
    weights: List[Any]
    step_losses: List[float]
    step_s: float


def seed(case: Case) -> None:
    """With a seed only."""
    strategy = make_strategy(case)
    _compare(case, strategy, _train(case, strategy), _train(case, strategy))


def op_determinism(case: Case) -> None:
    """With ``enable_op_determinism``, which makes TensorFlow refuse or replace nondeterministic operations."""
    strategy = make_strategy(case)
    before = _train(case, strategy).step_s
    tf.config.experimental.enable_op_determinism()
    one, other = _train(case, strategy), _train(case, strategy)
    _compare(case, strategy, one, other)
    case.measure({"cost": min(one.step_s, other.step_s) / before})


def _compare(case: Case, strategy: Any, one: _Training, other: _Training) -> None:
    gaps = [float(np.max(np.abs(a - b))) for a, b in zip(one.weights, other.weights)]
    case.note(step_s=other.step_s)
    case.measure({"difference": float(np.max(gaps))})
    names = [getattr(variable, "path", variable.name) for variable in other.model.weights]
    case.measure({f"difference of {name}": gap for name, gap in zip(names, gaps) if gap != 0})
    differing = [
        number for number, (first, second) in enumerate(zip(one.step_losses, other.step_losses), 1) if first != second
    ]
    if differing:
        case.measure({"first_step_apart": differing[0]})
    inspect_weights(case, strategy, other.model)


def _train(case: Case, strategy: Any) -> _Training:
    case.phase("build")
    tf.keras.utils.set_random_seed(SEED)
    inputs, targets, global_batch, *_ = make_batches(strategy.num_replicas_in_sync)
    data = tf.data.Dataset.from_tensor_slices((inputs, targets)).shuffle(len(inputs), seed=SEED).batch(global_batch)
    layers = tf.keras.layers
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                layers.InputLayer((FEATURES,)),
                layers.Dense(16, activation="tanh", name="hidden"),
                layers.Dropout(0.3),
                layers.Dense(1, name="out"),
            ]
        )
        optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
        model.compile(optimizer=optimizer, loss="mean_squared_error", jit_compile=False)
    case.note(optimizer=type(optimizer).__name__, examples=len(inputs), global_batch=global_batch)
    case.phase("data")
    step_losses: List[float] = []

    def keep_loss(batch: int, logs: Any) -> None:  # noqa: ARG001 - Keras's signature
        step_losses.append(float(logs["loss"]))

    keep = tf.keras.callbacks.LambdaCallback(on_train_batch_end=keep_loss)
    history = model.fit(data, epochs=1 + EPOCHS, verbose=0, callbacks=[clock(case, tf.keras), keep]).history
    case.note(losses=history["loss"][1:])
    weights = model.get_weights()
    case.phase("time")
    return _Training(model, weights, step_losses, fit_step_seconds(strategy, model, data.repeat()))


def each_operation(case: Case) -> None:
    """Each operation several times on the first device, without and with op determinism."""
    case.phase("strategy")
    device = replica_devices(case)[0] if case.devices_kind == "gpu" else "/CPU:0"  # uses all threads
    case.note(devices=[device])
    with tf.device(device):
        known: Dict[str, Callable[[], Any]] = dict(operations())
        before = {name: _run_freely(case, name, tf.function(function)) for name, function in known.items()}
        map_before = _run_freely(case, "random numbers in Dataset.map", random_numbers_in_a_map)
        tf.config.experimental.enable_op_determinism()
        tf.random.set_seed(SEED)
        for name, function in known.items():
            _run_deterministically(case, name, tf.function(function), before[name])
        _run_deterministically(case, "random numbers in Dataset.map", random_numbers_in_a_map, map_before)


def _run_freely(case: Case, name: str, run: Callable[[], Any]) -> float:
    """Note how much the runs differ; returns the seconds of the fastest."""
    case.phase(name)
    case.measure({f"{name}: difference": _difference(run)})
    return fastest_seconds(run)


def _run_deterministically(case: Case, name: str, run: Callable[[], Any], before: float) -> None:
    case.phase(name)
    try:
        case.measure({f"{name}: difference insisting": _difference(run)})
    except (tf.errors.OpError, RuntimeError):  # "... is not deterministic", "... not implemented"
        case.measure({f"{name}: refused": 1})
    else:
        case.measure({f"{name}: cost": fastest_seconds(run) / before})


def _difference(run: Callable[[], Any]) -> float:
    """The largest absolute difference between the first run and the others."""
    first = [np.asarray(one) for one in _listed(run())]
    gaps = [0.0]
    for _ in range(RUNS - 1):
        again = _listed(run())
        gaps += [float(np.max(np.abs(one - np.asarray(other)))) for one, other in zip(first, again)]
    return float(np.max(gaps))


def _listed(result: Any) -> List[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


CASES = {"operations": each_operation}
