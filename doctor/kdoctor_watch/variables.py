"""Looks at the variables of a training on the backend that it uses."""

import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kdoctor_watch.facts import ReplicaDifference, WatchedInput, WatchedReplicas
from kdoctor_watch.recorder import Recorder

SHARE = 0.002
"""Without ``every``, looks at the variables may take at most this share of the training."""
EVERY = 100
"""Steps between two looks, at least, without ``every``."""
_FIRST_LOOK = 7
"""Steps before the first look, which compiles. tf_keras times the callbacks in the steps before."""
_SECOND_LOOK = 5
"""Steps before the second look, whose time counts."""
_MOST_DIFFERENCES = 20
_OF_KERAS = ("PyDataset", "Sequence")


class Variables:
    """The variables of one training, looked at every few steps."""

    def __init__(self, model: Any, recorder: Recorder, every: int | None) -> None:
        self._model = model
        self._recorder = recorder
        self._fixed, self._every = every, every or EVERY
        self._state: Any = None
        self.due = min(self._every, _FIRST_LOOK)
        """The step before which to look."""
        self._checks = 0
        self._last: int | None = None
        self._equal_at: int | None = None
        self._finite_at: int | None = None
        self._differences: dict[tuple[str, int], ReplicaDifference] = {}
        self._unavailable: str | None = None

    def look(self, done: int) -> None:
        """Look after step ``done``. Errors are kept as the reason why nothing is known."""
        began = time.perf_counter()
        read_pending(self._recorder)
        if self._unavailable is not None:
            self.due = done + 1 + self._every
            return
        try:
            if hasattr(self._model, "jax_state_sync"):
                self._model.jax_state_sync()  # the JAX trainer of Keras keeps the newest values outside the model
            if self._state is None:
                self._state = _state_of(self._model)
            self._compare(done)
            self._plan(done, time.perf_counter() - began)
        except Exception as error:  # noqa: BLE001 - looking must not end the training
            self._unavailable = f"{type(error).__name__}: {error}"

    def _plan(self, done: int, seconds: float) -> None:
        step_s = self._recorder.step_s
        if self._checks == 1 and self._fixed is None:
            self.due = done + _SECOND_LOOK
            return
        if self._fixed is None and step_s:
            self._every = max(EVERY, math.ceil(seconds / (SHARE * step_s)))
        self.due = done + 1 + self._every

    def _compare(self, done: int) -> None:
        from kdoctor_watch.target.state import different, not_finite

        seen = self._state.look()
        self._checks, self._last = self._checks + 1, done
        bad = not_finite(seen)
        for place, replica in bad:
            self._recorder.note(
                seen.names[place], done, finite=False, kind="variable", finite_at=self._finite_at, replica=replica
            )
        unequal = different(seen)
        for place, replica, other in unequal:
            key = (seen.names[place], replica)
            if key not in self._differences and len(self._differences) < _MOST_DIFFERENCES:
                found = self._state.describe(place, replica, other)
                self._differences[key] = ReplicaDifference(
                    variable=seen.names[place],
                    replica=replica,
                    other=other,
                    step=done,
                    equal_at=self._equal_at,
                    **found,
                )
        self._equal_at = self._equal_at if unequal else done
        self._finite_at = self._finite_at if bad else done

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that hold copies."""
        return tuple(self._state.devices) if self._state else ()

    @property
    def number(self) -> int:
        """How many variables are read."""
        return len(self._state.names) if self._state and self._checks else 0

    def facts(self) -> WatchedReplicas:
        """The comparisons so far."""
        return WatchedReplicas(
            replicas=self._state.replicas if self._state else 0,
            variables=sum(self._state.mirrored) if self._state else 0,
            checks=self._checks,
            last_step=self._last,
            every=self._every,
            unavailable=self._unavailable,
            differences=tuple(self._differences.values()),
        )


def _state_of(model: Any) -> Any:
    """The copies of the variables of a model and its optimizer.

    Raises:
        ValueError: there are none, or their backend is not known.
    """
    from kdoctor_watch.target.state import variables_of

    variables, assigned = variables_of(model)
    if not variables:
        raise ValueError("the model has no variables yet")
    jax, value = sys.modules.get("jax"), getattr(variables[0], "value", None)
    if jax is not None and isinstance(value, jax.Array):
        from kdoctor_watch.target.jax_state import JaxState

        return JaxState(variables)
    if sys.modules.get("tensorflow") is None or type(value).__module__.partition(".")[0] == "torch":
        raise ValueError("only the backends TensorFlow and JAX keep several replicas in one process")
    from kdoctor_watch.target.tensorflow_state import TensorFlowState

    return TensorFlowState(variables, assigned)


def read_pending(recorder: Recorder) -> None:
    """Read the reported tensors that were kept until now, with one transfer for each name."""
    read: set[int] = set()
    for name, steps, values in recorder.pending():
        try:
            for step, finite in zip(steps, _reader(values).are_finite(values), strict=True):
                recorder.note(name, step, finite=finite)
        except Exception:  # noqa: BLE001, S112 - not a number: a metric may be anything
            continue
        read |= set(steps)
    recorder.steps_read += len(read)


def _reader(values: Iterable[Any]) -> Any:
    """What reads tensors where they are. A job on JAX must not import TensorFlow, which takes the GPUs' memory."""
    jax = sys.modules.get("jax")
    if jax is not None and any(isinstance(value, jax.Array) for value in values):
        from kdoctor_watch.target import jax_state

        return jax_state
    if "tensorflow" in sys.modules:
        from kdoctor_watch.target import tensorflow_state

        return tensorflow_state
    from kdoctor_watch.target import state

    return state


class Input:
    """How long a training waits for its data."""

    _EVERY = 4
    """Steps between two looks, at least."""
    _BUFFER = 2
    _SHARE = 0.0005
    """Looks at the counter may take at most this share of the time, after the first ones."""
    _FIRST_LOOKS = 16

    def __init__(self) -> None:
        self._counter: Any = None
        self._before = 0
        self._looks = self._empty = 0
        self._look_from = self._EVERY - 1
        self._look_after = 0.0
        self._waited_s = 0.0
        self._began: float | None = None
        self._ended = 0.0

    def wrap(self, data: Any) -> Any:
        """The same batches, watched.

        Raises:
            TypeError: these are not batches, or Keras reads them where nothing can be seen.
        """
        if "tensorflow" in sys.modules:
            from kdoctor_watch.target.tensorflow_state import BatchCounter, is_dataset

            if is_dataset(data):
                self._counter = BatchCounter(self._BUFFER)
                return self._counter.count(data)
        keras_class = next(
            (one for one in type(data).__mro__ if one.__name__ in _OF_KERAS and "keras" in one.__module__), None
        )
        if keras_class is not None:
            found = f"a {keras_class.__name__}, which Keras reads in other threads: pass it to fit as it is"
            raise TypeError(f"data: expected a tf.data.Dataset or an iterable of batches, found {found}")
        if hasattr(data, "shape") or not hasattr(data, "__iter__"):
            raise TypeError(f"data: expected a tf.data.Dataset or an iterable of batches, found {type(data).__name__}")
        return self.timed(data) if hasattr(data, "__next__") else _Batches(self, data)

    def timed(self, data: Iterable[Any]) -> Iterator[Any]:
        """The same batches. The time until each of them is there counts as waiting."""
        batches = iter(data)
        while True:
            began = time.perf_counter()
            self._began = self._began or began
            batch = next(batches, self)
            self._ended = time.perf_counter()
            self._waited_s += self._ended - began
            if batch is self:
                return
            yield batch

    def start(self) -> None:
        """A training begins: batches that an earlier one left behind are gone."""
        self._before = self._counter.produced if self._counter else 0
        self._look_from = self._EVERY - 1

    @property
    def due(self) -> float:
        """The step before which to look in any case. After the first looks, there is no such step."""
        return self._look_from if self._counter is not None and self._looks < self._FIRST_LOOKS else math.inf

    def before(self, step: int) -> None:
        """Look whether a batch is waiting, before some of the steps. As many batches as steps were used so far."""
        if self._counter is None or step < self._look_from:
            return
        began = time.perf_counter()
        if self._looks >= self._FIRST_LOOKS and began < self._look_after:
            return
        self._look_from = step + self._EVERY
        self._looks += 1
        self._empty += self._counter.produced - self._before <= step
        ended = time.perf_counter()
        self._look_after = ended + (ended - began) / self._SHARE

    def facts(self) -> WatchedInput:
        """The waiting so far."""
        if self._counter is None and self._began is None:
            return WatchedInput(unavailable="the data was not passed through watch.data(...)")
        return WatchedInput(
            looks=self._looks,
            empty=self._empty,
            waited_s=self._waited_s if self._began is not None else None,
            seconds=self._ended - self._began if self._began is not None else None,
        )


class _Batches:
    def __init__(self, data: Input, batches: Any) -> None:
        self._data = data
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return self._data.timed(self._batches)

    def __len__(self) -> int:
        return len(self._batches)


def note_gradients(recorder: Recorder, step: int, named: Mapping[str, Any]) -> None:
    """Read gradients of a custom loop after a step."""
    for name in _reader(named.values()).first_not_finite(dict(named)):
        recorder.note(name, step, finite=False, kind="gradient", finite_at=step - 1 if step else None)
