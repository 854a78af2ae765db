"""Trainings of copies of the job's model, on all replicas or on one device, with the same batches."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, TypeVar

import numpy as np
import tensorflow as tf

from kdoctor_job.target.copies import Copier, Setup
from kdoctor_job.target.epoch import Epoch, count_examples, fit
from kdoctor_job.target.fitting import FitArguments
from kdoctor_job.target.measures import numbers
from kdoctor_job.target.model import layers_of
from kdoctor_job.target.parts import keras_of
from kdoctor_job.target.random_numbers import random_numbers_fixed
from kdoctor_job.target.strategies import train_alone
from kdoctor_target.training.replicas import read_copies

Phase = Callable[[str], None]
T = TypeVar("T")


class SpentError(Exception):
    """There is no time left for another training; the message says so."""


class Trained(NamedTuple):
    """The result of a few steps."""

    started: List[Any]
    """The weights before."""
    copies: List[List[Any]]
    """Each variable's copies, one of each replica."""
    losses: List[Optional[float]]
    """After each execution."""
    seconds: List[float]
    """Of each execution."""
    logs: Dict[str, Optional[float]]
    """What ``fit`` reports at the end of the epoch."""

    @property
    def weights(self) -> List[Any]:
        """The weights of the first replica, or of the only device."""
        return [copies[0] for copies in self.copies]


@dataclass
class Trials:
    """Trains one copy on the replicas and one on a single device, again and again."""

    copier: Copier
    strategy: Any
    batches: Sequence[Any]
    budget_s: Optional[float]
    fit: Optional[FitArguments] = None
    phase: Phase = field(default=lambda _: None)
    """Gets the name of each training after the job's first steps."""
    mirrored: Any = field(default=None, init=False)
    """The copy on the replicas."""
    alone: Any = field(default=None, init=False)
    """The copy on one device."""
    _started: float = field(default_factory=time.monotonic, init=False)
    _slowest: float = field(default=0.0, init=False)
    _compared: int = field(default=0, init=False)

    def on_replicas(self, setup: Setup, phase: Optional[Phase] = None) -> Trained:
        """Train on all replicas.

        Raises:
            CopyError: the model cannot be copied.
            SpentError: there is no time left.
        """
        made, self.mirrored = self.mirrored, None  # one whose training failed is not used again
        with self._timed(is_compared=phase is None):
            with self.strategy.scope():
                made = self._ready(made, setup)
            more = self._arguments(setup)
            with random_numbers_fixed(fixed=setup.still):
                done = self._train(made, self.batches, lambda one: read_copies(self.strategy, one), phase, more)
        self.mirrored = made
        return done

    def on_one_device(self, setup: Setup, *, order: int = 0) -> Trained:
        """Train on one device.

        Args:
            setup: what the copy has of the job.
            order: for each number but 0, the examples of each batch have another order and another last bit, and
                generators of Keras another seed.

        Raises:
            CopyError: the model cannot be copied.
            SpentError: there is no time left.
        """

        def work() -> Trained:
            train_alone()
            self.alone = self._ready(self.alone, setup._replace(one_device=True))
            _reseed(self.alone, order)
            batches = [_reordered(batch, order, last_bit(self.alone)) for batch in self.batches]
            with random_numbers_fixed(fixed=setup.still):
                return self._train(self.alone, batches, lambda one: [one], None, self._arguments(setup))

        with self._timed(is_compared=True):
            return in_a_thread(work)

    def on_its_data(self, epoch: Epoch, setup: Optional[Setup]) -> int:
        """Train a new copy for an epoch on the data as the job has it.

        Args:
            epoch: the data.
            setup: what the copy has of the job; None for the model as the job makes it.

        Returns:
            The number of examples that were trained.

        Raises:
            CopyError: the model cannot be copied.
            SpentError: there is no time left.
        """
        with self._timed():
            with self.strategy.scope():
                made = self.copier.make() if setup is None else self.copier.copy(self.batches[0], setup)
                trained = count_examples(made)
            fit(made, epoch, {} if self.fit is None else self.fit.of_copies())
            return trained()

    def reset(self, sign: int = 1) -> None:
        """Give both copies the weights that they started with, or kernels of the other sign for other outputs."""
        weights = [sign * one if np.ndim(one) > 1 else one for one in self.copier.weights or ()]
        self.mirrored.set_weights(weights)
        in_a_thread(lambda: self.alone.set_weights(weights))

    def _ready(self, made: Any, setup: Setup) -> Any:
        if made is None:
            return self.copier.copy(self.batches[0], setup)
        return self.copier.again(made, self.batches[0], setup)

    def _arguments(self, setup: Setup) -> Dict[str, Any]:
        """Arguments of ``fit``. Only the job's own optimizer needs a validation."""
        if self.fit is None:
            return {}
        validation = self.fit.validation if setup.own else []
        more: Dict[str, Any] = {"validation_data": dataset(validation)} if validation else {}
        return {**self.fit.of_copies(), **more}

    @staticmethod
    def _train(
        model: Any,
        batches: Sequence[Any],
        read: Callable[[Any], Sequence[Any]],
        phase: Optional[Phase],
        more: Dict[str, Any],
    ) -> Trained:
        started = model.get_weights()
        clock = _clock(keras_of(model), phase)
        history = model.fit(dataset(batches), epochs=1, verbose=0, shuffle=False, callbacks=[clock], **more).history
        copies = [[copy.numpy() for copy in read(one)] for one in model.weights]
        logs = numbers({name: values[-1] for name, values in history.items() if values})
        return Trained(started, copies, clock.losses, clock.seconds, logs)

    @contextlib.contextmanager
    def _timed(self, *, is_compared: bool = False) -> Iterator[None]:
        if is_compared:
            self._compared += 1
            self.phase(f"comparison with one device, training {self._compared}")
        began = time.monotonic()
        if self.budget_s is not None and began - self._started + self._slowest > self.budget_s:
            raise SpentError(f"there was no time for it: each training takes about {self._slowest:.0f} s")
        yield
        self._slowest = max(self._slowest, time.monotonic() - began)


def dataset(batches: Sequence[Any]) -> Any:
    """The batches as a dataset, the last of which may be shorter."""
    size = len(tf.nest.flatten(batches[0])[0])
    joined = tf.nest.map_structure(lambda *parts: np.concatenate(parts), *batches)
    full = all(len(tf.nest.flatten(batch)[0]) == size for batch in batches)
    return tf.data.Dataset.from_tensor_slices(joined).batch(size, drop_remainder=full)


def _reseed(model: Any, order: int) -> None:
    """Have the generators of Keras 3 draw other numbers; Keras 2 has none whose state is a variable of the layer."""
    for part in (model, *layers_of(model)) if order else ():
        for generator in getattr(part, "_seed_generators", ()):
            state = generator.state.numpy()
            state[0] += order
            generator.state.assign(state)


def last_bit(model: Any) -> float:
    """The smallest relative change of an input that the least precise layer sees; 0 for what the input itself has."""
    bits = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
    return max([bits.get(getattr(layer, "compute_dtype", ""), 0.0) for layer in layers_of(model)], default=0.0)


def _reordered(batch: Any, order: int, bit: float) -> Any:
    if not order:
        return batch
    numbers = np.random.RandomState(order)
    indices = numbers.permutation(len(tf.nest.flatten(batch)[0]))

    def changed(leaf: Any) -> Any:
        if not np.issubdtype(leaf.dtype, np.floating):
            return leaf[indices]
        up = numbers.choice([-1.0, 1.0], leaf.shape) * max(bit, np.finfo(leaf.dtype).eps)
        return (leaf[indices] * (1 + up)).astype(leaf.dtype)

    inputs, *others = batch if isinstance(batch, tuple) else (batch,)
    made = (tf.nest.map_structure(changed, inputs), *tf.nest.map_structure(lambda leaf: leaf[indices], others))
    return made if isinstance(batch, tuple) else made[0]


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


def _clock(keras: Any, phase: Optional[Phase]) -> Any:
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
