"""Trains copies of the job's model for a few steps: on all replicas with its optimizer, and against one device."""

from __future__ import annotations

import math
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, TypeVar

import numpy as np
import tensorflow as tf

from kdoctor_target.job.copies import Copier, CopyError
from kdoctor_target.job.model import is_compiled, random_layers
from kdoctor_target.job.parts import describe, is_default, keras_of, replica_devices
from kdoctor_target.training.replicas import read_copies

Facts = Dict[str, Any]
T = TypeVar("T")

_NAMES_SHOWN = 6
_SMALLEST_CHANGE = 0.1
"""Smaller changes of a variable, as shares of the largest change of any, count as this much: a bias in front of a
BatchNormalization changes by rounding only."""
_QUIET = 1e-3
"""Below this deviation, whether the training is reproducible does not matter."""

COMPARED = ("MirroredStrategy", "OneDeviceStrategy", "_DefaultDistributionStrategy")
"""Single-process strategies, under which a copy can be trained here."""


class JobTrainer:
    """Trains copies of the model on the same batches."""

    def __init__(self, model: Any, builder: Optional[Callable[[], Any]], strategy: Any, batches: Sequence[Any]) -> None:
        self._model = model
        self._strategy = strategy
        self._copier = Copier(model, builder)
        self._batches = list(batches)
        self.facts: Facts = {"steps": len(self._batches)}
        """By the names of ``JobTraining``'s fields."""

    def run(self, phase: Callable[[str], None]) -> None:
        """Train with the job's optimizer, then compare with one device."""
        reason = self._why_not()
        if reason:
            self.facts["not_run"] = reason
            return
        try:
            phase("build")
            copy = self._train_own(phase)
        except CopyError as error:
            self.facts["not_run"] = str(error)
            return
        except Exception as error:
            self.facts["problem"] = describe(error)
            return
        finally:
            self.facts["memory"] = _memory(self._strategy)
        try:
            phase("reference")
            self._compare(copy)
        except Exception as error:
            self.facts["not_compared"] = str(error) if isinstance(error, CopyError) else describe(error)

    def _why_not(self) -> Optional[str]:
        kind = type(self._strategy).__name__
        if kind not in COMPARED:
            return f"copies cannot be trained in one process under {kind}"
        if not is_compiled(self._model):
            return "the model is not compiled; custom training loops are not run"
        if not self._batches:
            return "no steps were requested (--steps 0), or no batch was read"
        return None

    def _train_own(self, phase: Callable[[str], None]) -> Any:
        with self._strategy.scope():
            copy = self._copier.copy(self._batches[0], own_optimizer=True, one_device=False)
        clock = self._fit(copy, phase)
        variables = [one for one in copy.variables if np.issubdtype(_numpy_type(one), np.floating)]
        lost = [
            getattr(one, "path", one.name)
            for one in variables
            if not all(np.isfinite(part.numpy()).all() for part in read_copies(self._strategy, one))
        ]
        later = sorted(clock.seconds[1:])
        self.facts.update(own_losses=clock.losses, nonfinite=lost[:_NAMES_SHOWN])
        self.facts["step_s"] = later[len(later) // 2] if later else None
        return copy

    def _compare(self, trained: Any) -> None:
        with self._strategy.scope():
            copy = self._copier.make_comparable(trained)
        started = copy.get_weights()
        losses = self._fit(copy).losses
        everywhere = [[part.numpy() for part in read_copies(self._strategy, one)] for one in copy.weights]
        self.facts["stilled"] = [layer.name for layer in random_layers(copy)]
        reference_losses, reference = in_a_thread(self._train_on_one_device)
        self.facts.update(losses=losses, reference_losses=reference_losses)
        changes = _differences(started, [[one] for one in reference])
        way = float(np.max(changes))
        if not way or not math.isfinite(way):
            why = "no weight changes" if way == 0 else "the weights are not finite, even on one device"
            steps = len(self._batches)
            self.facts["not_compared"] = f"in {steps} {'step' if steps == 1 else 'steps'} {why}"
            return
        scale = np.maximum(changes, _SMALLEST_CHANGE * way)
        deviation = float(np.max(_differences(reference, everywhere) / scale))
        self.facts["deviation"] = deviation
        if not deviation < _QUIET:
            _, again = in_a_thread(self._train_on_one_device)
            self.facts["noise"] = float(np.max(_differences(reference, [[one] for one in again]) / scale))

    def _train_on_one_device(self) -> Any:
        copy = self._copier.copy(self._batches[0], own_optimizer=False, one_device=True)
        losses = self._fit(copy).losses
        return losses, copy.get_weights()

    def _fit(self, model: Any, phase: Optional[Callable[[str], None]] = None) -> Any:
        clock = _clock(keras_of(model), phase)
        model.fit(_dataset(self._batches), epochs=1, verbose=0, shuffle=False, callbacks=[clock])
        return clock


def in_a_thread(work: Callable[[], T]) -> T:
    """The result of ``work`` in a separate thread, because strategies and Keras's counters are thread-local.

    Its exceptions are raised here.
    """
    keras: Any = sys.modules.get("keras")
    policy = keras.config.dtype_policy() if hasattr(keras, "config") else None  # thread-local, too
    results: List[T] = []
    errors: List[BaseException] = []

    def run() -> None:
        try:
            if policy is not None:
                keras.config.set_dtype_policy(policy)
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)  # so that Ctrl-C reaches the user's thread
    if errors:
        raise errors[0]
    return results[0]


def _dataset(batches: Sequence[Any]) -> Any:
    size = len(tf.nest.flatten(batches[0])[0])
    joined = tf.nest.map_structure(lambda *parts: np.concatenate(parts), *batches)
    return tf.data.Dataset.from_tensor_slices(joined).batch(size, drop_remainder=True)


def _clock(keras: Any, phase: Optional[Callable[[str], None]]) -> Any:
    """A callback that reports each step, and records its loss and its seconds.

    The job's train_step is not wrapped, so tracing is part of the first step here.
    """

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types here
        def __init__(self) -> None:
            super().__init__()
            self.losses: List[Optional[float]] = []
            self.seconds: List[float] = []
            self._started = 0.0

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
            if phase:
                phase(f"step {len(self.seconds) + 1}" if self.seconds else "first step")
            self._started = time.perf_counter()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.losses.append(_loss(logs or {}))
            self.seconds.append(time.perf_counter() - self._started)

    return Clock()


def _loss(logs: Any) -> Optional[float]:
    """The loss of a step: the log named ``loss``, or the first number that a custom train_step reports."""
    names = [name for name in logs if name == "loss"] or list(logs)
    if not names:
        return None
    number = float(np.mean(logs[names[0]]))
    return number if math.isfinite(number) else None


def _numpy_type(variable: Any) -> Any:
    kind = variable.dtype
    name = kind if isinstance(kind, str) else kind.name
    return np.float32 if name == "bfloat16" else np.dtype(name) if name != "string" else np.dtype(object)


def _differences(ones: Sequence[Any], copies: Sequence[Sequence[Any]]) -> Any:
    """Largest absolute difference of each variable from its copies; NaN if there is one."""
    return np.array([np.max([_largest(one, other) for other in others]) for one, others in zip(ones, copies)])


def _largest(one: Any, other: Any) -> float:
    apart = np.abs(np.asarray(one, "float64") - np.asarray(other, "float64"))
    return float(np.max(apart)) if apart.size else 0.0


def _memory(strategy: Any) -> List[Facts]:
    """Peak and limit of the memory of each GPU with a replica.

    The peak covers the whole process: it is the user's, and is not reset.
    """
    listed = tf.config.list_logical_devices("GPU") if is_default(strategy) else []
    gpus = [name for name in (*replica_devices(strategy), *(gpu.name for gpu in listed)) if "GPU" in name]
    if not gpus:
        return []
    from tensorflow.python.client import device_lib

    limits = {one.name: one.memory_limit for one in device_lib.list_local_devices()}
    found = []
    for name in gpus:
        short = "/device:" + name.rpartition("device:")[2]
        peak = tf.config.experimental.get_memory_info(short.replace("/device:", ""))["peak"]
        if short in limits:
            found.append({"device": short, "peak_bytes": int(peak), "limit_bytes": int(limits[short])})
    return found
