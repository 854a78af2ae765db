"""Trainings of copies of the job's model, on all replicas or on one device, with the same batches."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

import numpy as np
import tensorflow as tf

from kdoctor_job.target.batches import dataset, last_bit, part_of, reordered
from kdoctor_job.target.cloning import precise
from kdoctor_job.target.copies import Copier, Setup
from kdoctor_job.target.epoch import Epoch, count_examples, fit, of_each_replica
from kdoctor_job.target.fitting import FitArguments
from kdoctor_job.target.layers import layers_of
from kdoctor_job.target.measures import numbers
from kdoctor_job.target.model import is_real
from kdoctor_job.target.options import build_optimizers, optimizers_in, places_built, watch_sparse
from kdoctor_job.target.own_fit import as_keras_gets
from kdoctor_job.target.parts import keras_of, replica_devices
from kdoctor_job.target.random_numbers import (
    random_numbers_added,
    random_numbers_fixed,
    random_numbers_repeated,
    watch_numpy,
)
from kdoctor_job.target.strategies import train_alone
from kdoctor_target.training.replicas import read_copies

Phase = Callable[[str], None]
T = TypeVar("T")


class SpentError(Exception):
    """There is no time left for another training; the message says so."""


class Slot(NamedTuple):
    """A variable of an optimizer."""

    kind: str
    """The last word of its name: ``momentum``, ``velocity``."""
    started: Any
    ended: Any
    """On the first replica."""


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
    slots: List[Slot]
    """The variables that the optimizers have before the first step. Those of Keras 2 are left out."""
    names: List[str]
    kinds: List[str]
    """The last word of a variable's name if it is not trainable, else empty."""

    def of_trainable(self, values: Sequence[Any]) -> List[Any]:
        """Those of these values, one of each variable, that belong to trainable ones."""
        return [value for value, kind in zip(values, self.kinds) if not kind]

    @property
    def weights(self) -> List[Any]:
        """The weights of the first replica, or of the only device."""
        return [copies[0] for copies in self.copies]


@dataclass
class Copy:
    """A copy of the job's model. The next training of the same kind goes on with what was traced for it."""

    made: Any
    kind: Any
    strategy: Any
    created: List[Any]
    """Every variable that TensorFlow has made for it."""
    _begun: List[List[Any]] = field(default_factory=list, init=False)

    def begin(self) -> None:
        """Remember the variables, before the first step. Replicas and zeros of a shape share one array."""
        known: Dict[Any, Any] = {}

        def kept(array: Any) -> Any:
            return known.setdefault((array.shape, str(array.dtype), hash(array.tobytes())), array)

        self._begun = self._begun or [[kept(part.numpy()) for part in self._parts(one)] for one in self.created]

    def restart(self) -> bool:
        """Give each variable its value before the first step; false if there may be other state, such as in Python."""
        if len(self._begun) != len(self.created) or self.made.run_eagerly:
            return False
        for one, values in zip(self.created, self._begun):
            for part, value in zip(self._parts(one), values):
                part.assign(value)
        return True

    def _parts(self, one: Any) -> Sequence[Any]:
        parts: Sequence[Any] = self.strategy.experimental_local_results(one)
        return parts


@dataclass
class Trials:
    """Trains one copy on the replicas and one on a single device, again and again."""

    copier: Copier
    strategy: Any
    batches: Sequence[Any]
    budget_s: Optional[float]
    fit: Optional[FitArguments] = None
    is_static: bool = True
    """Whether the batch size is part of the data's type."""
    final: int = 0
    """Examples in the final batch; 0 if that is not known."""
    odd: Optional[Tuple[str, Any]] = None
    """A batch with other shapes than these, and its name."""
    phase: Phase = field(default=lambda _: None)
    """Gets the name of each training after the job's first steps."""
    draws_alike: Optional[bool] = field(default=None, init=False)
    """Whether two replicas drew equal numbers in all steps on the job's data; None if none were seen."""
    numpy_draws: bool = field(default=False, init=False)
    """Whether NumPy draws numbers when such a step is traced, and never after that."""
    sparse: List[str] = field(default_factory=list, init=False)
    """The variables whose gradients list rows, in a step on the job's data."""
    rows: Optional[int] = field(default=None, init=False)
    """Examples that :meth:`cut` left in each batch; None if it was not called."""
    _mirrored: Optional[Copy] = field(default=None, init=False)
    _alone: Optional[Copy] = field(default=None, init=False)
    _built: Dict[str, List[int]] = field(default_factory=dict, init=False)
    """The places of the variables that each optimizer of the copy on the replicas updates, by its attribute."""
    _started: float = field(default_factory=time.monotonic, init=False)
    _slowest: float = field(default=0.0, init=False)
    _compared: int = field(default=0, init=False)

    @property
    def mirrored(self) -> Any:
        """The copy on the replicas; None if there is none."""
        return self._mirrored and self._mirrored.made

    @property
    def alone(self) -> Any:
        """The copy on one device; None if there is none."""
        return self._alone and self._alone.made

    def on_replicas(self, setup: Setup, phase: Optional[Phase] = None, *, order: int = 0) -> Trained:
        """Train on all replicas.

        Args:
            setup: what the copy has of the job.
            phase: gets the name of each step.
            order: for each number but 0, the examples of each batch have another order and another last bit.

        Raises:
            CopyError: the model cannot be copied.
            SpentError: there is no time left.
        """
        made, self._mirrored = self._mirrored, None  # one whose training failed is not used again
        with self._timed(is_compared=phase is None), _variables_made(made) as created, self._precision(setup):
            with self.strategy.scope():
                made = self._ready(made, setup, self.strategy, created)
            with random_numbers_fixed(fixed=setup.still):
                batches = [reordered(batch, order, last_bit(made.made)) for batch in self._read(setup)]
                done = self._train(made, batches, setup, phase)
        self._mirrored = made
        return done

    def on_one_device(self, setup: Setup, *, order: int = 0, part: Tuple[int, int] = (0, 1)) -> Trained:
        """Train on one device.

        Args:
            setup: what the copy has of the job.
            order: as for all replicas; and generators of Keras have another seed.
            part: which share of each batch to train, and the number of shares.

        Raises:
            CopyError: the model cannot be copied.
            SpentError: there is no time left.
        """

        def work() -> Trained:
            kept, self._alone = self._alone, None
            alone = setup._replace(one_device=True)
            with _variables_made(kept) as created:
                made = self._ready(kept, alone, tf.distribute.get_strategy(), created)
                with random_numbers_fixed(fixed=setup.still):
                    if made is not kept:
                        self._prepare(made.made)
                        made.begin()
                    _reseed(made.made, order)
                    self._alone = made
                    bit = last_bit(made.made)
                    batches = [reordered(part_of(batch, *part), order, bit) for batch in self._read(setup)]
                    return self._train(made, batches, setup, None)

        with self._timed(is_compared=True), self._precision(setup):
            return self.apart(work)

    def apart(self, work: Callable[[], T]) -> T:
        """The result of ``work`` in a separate thread, without the strategy and on the device of its first replica."""

        def on_device() -> T:
            train_alone()
            listed = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
            first = replica_devices(self.strategy)[0]
            # Without a scope, TensorFlow computes on its first device.
            with tf.device(None if not first or first.endswith(listed[0].name) else first):
                return work()

        return in_a_thread(on_device)

    def cut(self) -> bool:
        """Cut each batch to the size of a replica's share of it, and the second time to one example for each replica.

        One device seldom has the memory for what several share.

        Returns:
            Whether the batches are smaller than before.
        """
        replicas = self.strategy.num_replicas_in_sync
        size, *others = {len(leaf) for leaf in tf.nest.flatten(list(self.batches))}
        rows = replicas if self.rows else replicas * max(1, size // replicas**2)
        if others or rows >= size:
            return False
        self.rows, self.batches = rows, tf.nest.map_structure(lambda leaf: leaf[:rows], list(self.batches))
        return True

    @property
    def can_be_precise(self) -> bool:
        """Whether a copy can compute more precisely."""
        return "float64" not in {getattr(layer, "compute_dtype", None) for layer in layers_of(self.mirrored)}

    def _precision(self, setup: Setup) -> ContextManager[None]:
        return precise(keras_of(self.copier.model), applies=setup.precise)

    def _read(self, setup: Setup) -> Sequence[Any]:
        """The batches, with numbers of the type in which the copy computes."""

        def converted(one: Any) -> Any:
            return one.astype("float64") if one.dtype == "float32" else one

        return tf.nest.map_structure(converted, list(self.batches)) if setup.precise else self.batches

    def on_its_data(self, epoch: Epoch, setup: Setup, phase: Optional[Phase] = None) -> int:
        """Train a new copy for an epoch on the data as the job has it.

        Args:
            epoch: the data.
            setup: what the copy has of the job.
            phase: gets the name of each step.

        Returns:
            The number of examples that were trained.

        Raises:
            CopyError: the model cannot be copied.
            SpentError: there is no time left.
        """
        with self._timed(), _variables_made(None) as created:
            with self.strategy.scope():
                made = self._ready(None, setup, self.strategy, created)
                trained, drawn = count_examples(made.made), of_each_replica(tf.float64)
                in_numpy, sparse = watch_numpy(made.made), watch_sparse(made.made)
            more = {} if self.fit is None else self.fit.of_copies()
            with random_numbers_added(drawn):
                fit(made.made, epoch, {**more, "callbacks": [_clock(made, phase)]})
            self.numpy_draws, self.sparse = in_numpy(), sparse()
            sums = [one.numpy() for one in self.strategy.experimental_local_results(drawn)]
            self.draws_alike = len(set(sums)) < len(sums) if any(sums) else None
            self._mirrored = made
            self._built = places_built(made.made)
            return trained()

    def go_on(self, batches: Sequence[Any]) -> List[Optional[float]]:
        """Train the copy on the replicas with more batches, the last of which may be shorter.

        Returns:
            The losses of the steps; None for one that is not finite.
        """
        return self._train(self._mirrored, batches, Setup(own=False), None).losses if self._mirrored else []

    def reset(self, sign: int = 1) -> None:
        """Give both copies the weights that they started with, or kernels of the other sign for other outputs."""
        weights = [sign * one if np.ndim(one) > 1 else one for one in self.copier.weights or ()]
        self.mirrored.set_weights(weights)
        self.apart(lambda: self.alone.set_weights(weights))

    def _ready(self, kept: Optional[Copy], setup: Setup, strategy: Any, created: List[Any]) -> Copy:
        kind = setup, self.copier.drawing
        if kept is not None and kept.kind == kind and kept.restart():
            return kept
        created.clear()
        with random_numbers_repeated():
            return Copy(self.copier.copy(self.batches[0], setup), kind, strategy, created)

    def _prepare(self, alone: Any) -> None:
        """Have the variables made that the copy on the replicas has, because TensorFlow traces twice to make some."""
        build_optimizers(alone, self._built)
        if self._built and hasattr(alone, "_symbolic_build"):
            with contextlib.suppress(Exception):  # a model without call
                alone._symbolic_build(data_batch=as_keras_gets(alone, self.batches[0]))  # noqa: SLF001 - as fit does

    def _arguments(self, setup: Setup) -> Dict[str, Any]:
        """Arguments of ``fit``. Only the job's own optimizer needs a validation."""
        if self.fit is None:
            return {}
        validation = self.fit.validation if setup.own else []
        more: Dict[str, Any] = {"validation_data": dataset(validation)} if validation else {}
        return {**self.fit.of_copies(), **more}

    def _train(self, copy: Copy, batches: Sequence[Any], setup: Setup, phase: Optional[Phase]) -> Trained:
        model = copy.made
        started = model.get_weights()
        clock = _clock(copy, phase)
        data, more = dataset(batches, is_static=self.is_static), self._arguments(setup)
        history = model.fit(data, epochs=1, verbose=0, shuffle=False, callbacks=[clock], **more).history
        copies = [_read_copies(copy.strategy, one) for one in model.weights]
        slots = [
            Slot(str(one.path).rpartition("_")[2], begun, read_copies(copy.strategy, one)[0].numpy())
            for one, begun in clock.slots
        ]
        logs = numbers({name: values[-1] for name, values in history.items() if values})
        names = [str(getattr(one, "path", one.name)) for one in model.weights]
        kinds = ["" if one.trainable else name.rpartition("/")[2] for one, name in zip(model.weights, names)]
        return Trained(started, copies, clock.losses, clock.seconds, logs, slots, names, kinds)

    @contextlib.contextmanager
    def _timed(self, *, is_compared: bool = False) -> Iterator[None]:
        if is_compared:
            self._compared += 1
            self.phase(f"comparison with one device, training {self._compared}")
        began = time.monotonic()
        if self.budget_s is not None and began - self._started + self._slowest > self.budget_s:
            more = "allow more time (--model-timeout; in Python budget_s)"
            raise SpentError(f"each training takes about {self._slowest:.0f} s: {more}")
        yield
        self._slowest = max(self._slowest, time.monotonic() - began)


@contextlib.contextmanager
def _variables_made(kept: Optional[Copy]) -> Iterator[List[Any]]:
    """A list that gets every variable that TensorFlow makes meanwhile in this thread, after those of the copy."""
    created: List[Any] = [] if kept is None else kept.created

    def record(make: Any, **arguments: Any) -> Any:
        created.append(make(**arguments))
        return created[-1]

    with tf.variable_creator_scope(record):
        yield created


def _read_copies(strategy: Any, variable: Any) -> List[Any]:
    """The values of all replicas. Equal ones are one array, because a model may have gigabytes."""
    first, *others = (part.numpy() for part in read_copies(strategy, variable))
    return [first, *(first if np.array_equal(one, first) else one for one in others)]


def _reseed(model: Any, order: int) -> None:
    """Have the generators of Keras 3 draw other numbers; Keras 2 has none whose state is a variable of the layer."""
    for part in (model, *layers_of(model)) if order else ():
        for generator in getattr(part, "_seed_generators", ()):
            state = generator.state.numpy()
            state[0] += abs(order)
            generator.state.assign(state)


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


def _clock(copy: Copy, phase: Optional[Phase]) -> Any:
    """A callback that reports each step, and records its loss and its seconds.

    The job's train_step is not wrapped, so tracing is part of the first step here.
    """
    keras: Any = keras_of(copy.made)

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types here
        def __init__(self) -> None:
            super().__init__()
            self.losses: List[Optional[float]] = []
            self.seconds: List[float] = []
            self.slots: List[Tuple[Any, Any]] = []
            self._started = 0.0

        def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
            copy.begin()
            for optimizer in optimizers_in(keras, copy.made).values():
                made = optimizer.variables
                self.slots += [(one, one.numpy()) for one in ([] if callable(made) else made) if is_real(one)]

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
