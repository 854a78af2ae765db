"""The first step of a script's training loop, up to which the script runs.

What each replica gets, and the gradients that the optimizer applies, are noted while it runs.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import itertools
import sys
import threading
import time
import traceback
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import numpy as np
import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.distribute.values import MirroredVariable
from tensorflow.python.framework import errors_impl
from tensorflow.python.ops import script_ops

from kdoctor_job.target.random_numbers import random_numbers_fixed

_MOST = 20_000
"""Numbers of a variable that are compared."""
_LARGEST = 50_000_000
"""Numbers of a variable whose sparse gradient is made dense."""
_PENDING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_MOST_CALLS = 64
"""Calls that take gradients and update nothing."""
_LATE_S = 5.0
"""Seconds for the notes of a step after the next one has begun."""
_OUTSIDE_S = 10.0
"""Seconds for which a script may update variables outside ``strategy.run`` before it trains with one."""
_OF_KERAS_2 = ("_resource_apply_dense", "_resource_apply_sparse_duplicate_indices")
"""What updates a variable in a legacy optimizer. The second one gets the gradient's values and their indices."""
_UNSEEN = (tf.RaggedTensor, tf.SparseTensor, tf.data.Iterator)
Arrays = List[Any]
Gradients = Dict[int, Tuple[Any, Any]]
"""The gradient and the value before the step of each variable, in the order in which they are updated."""


def is_seen(leaf: Any) -> bool:
    """Whether this argument of a step may hold examples that are noted."""
    return isinstance(leaf, np.ndarray) or (tf.is_tensor(leaf) and not isinstance(leaf, _UNSEEN))


def mirrored() -> Iterator[Any]:
    """The trained variables of all replicas."""
    with tf.init_scope():
        for one in gc.get_objects():
            if isinstance(one, MirroredVariable) and one.trainable and one.dtype.is_floating:
                yield one


class FirstStep:
    """Notes the first step that takes a gradient."""

    applies = True
    """Whether the optimizer updates the variables."""

    def __init__(self, strategy: Any) -> None:
        self.strategy = strategy
        """Whose ``run`` is meant."""
        self.name = ""
        """The function of the step."""
        self.calls: List[Dict[int, Arrays]] = []
        """The tensors that each replica gets in each call that takes a gradient or updates variables: several if the
        first ones only add up gradients."""
        self.is_distributed = False
        """Whether any of it is made of one value for each replica."""
        self.unseen = ""
        """What it gets whose examples are not seen."""
        self.is_optimized = False
        """Whether an optimizer of Keras updates variables."""
        self.values: Dict[int, Any] = {}
        """Those of updated variables, as later gradients find them."""
        self.trains = False
        """Whether Keras takes a step now (``train_on_batch``)."""
        self.of_keras = False
        """Whether it has taken this one."""
        self.taken: Callable[[], object] = lambda: None
        """Is called after the step, and does not return."""
        self.on_one_device: Callable[[], object] = lambda: None
        """Is called if variables are updated only outside ``strategy.run``."""
        self.is_outside = False
        """Whether variables are updated outside ``strategy.run``."""
        self._ends = threading.Lock()
        self._before: Optional[List[Tuple[Any, Any]]] = None
        """The trained variables, and what they held before the first call."""
        self._updated_on: Set[int] = set()
        """The replicas on which a call has updated variables."""
        self._takes_gradient = False
        self._gradients: Dict[str, Dict[int, Any]] = {}
        """By device. None are not noted yet."""
        self._orders: Dict[str, Iterator[int]] = {}
        self._summed: List[int] = []
        """The number of tensors in each sum over the replicas, since a gradient was taken."""
        self._updated: Dict[str, Dict[int, Any]] = {}
        """The variables, by device, since a gradient was taken."""
        self._is_inside = self._is_traced = False
        self._when_back = _PENDING(self._back)

    @property
    def gradients(self) -> Gradients:
        """Those that the optimizers apply on the first device."""
        first = self._gradients[min(self._gradients)] if self._gradients else {}
        return {number: pair for number, pair in first.items() if pair is not None}

    @property
    def sums(self) -> int:
        """How often the gradients of all updated variables are added up over the replicas."""
        return sum(tensors >= len(self.gradients) for tensors in self._summed)

    def run(
        self, inherited: Callable[..., Any], strategy: Any, function: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """``strategy.run``, from which the script does not go on once the step is over.

        If a ``tf.function`` is traced, the script does not go on when that returns.
        """
        self.of_keras = self.trains
        leaves = tf.nest.flatten((args, kwargs))
        self.is_distributed |= any(isinstance(leaf, tf.distribute.DistributedValues) for leaf in leaves)
        self._is_traced = tf.inside_function()
        if self._before is None:
            self._before = [(one, one.numpy()) for one in mirrored()]
        result = self._call(inherited, strategy, function, args, kwargs)
        if not self._is_traced and self.is_over():
            self.taken()
        return result

    def is_over(self) -> bool:
        """Whether a call has updated variables, with an optimizer or without, or none did for long."""
        if self._updated_on or len(self.calls) >= _MOST_CALLS:
            return True
        return bool(self.calls) and any(not np.array_equal(one.numpy(), was) for one, was in self._before or [])

    def _call(self, inherited: Callable[..., Any], strategy: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """``strategy.run`` with notes, and with random numbers that are the same on each replica."""
        self._takes_gradient = False
        self._orders.clear()
        self._updated.clear()
        self._is_inside = True
        try:
            with random_numbers_fixed():
                return inherited(strategy, self._noting(function), args, kwargs)
        finally:
            self._is_inside = False

    def _noting(self, function: Any) -> Any:
        own = getattr(function, "python_function", None)
        """Of a ``tf.function``, which ``strategy.run`` traces for all replicas at once. XLA has no place for notes."""
        status = ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED) if own else ag_ctx.control_status_ctx()
        converted = tf.__internal__.autograph.tf_convert(own or function, status, convert_by_default=False)

        def noting(*args: Any, **kwargs: Any) -> Any:
            with status:  # of the script, for what it calls
                result = converted(*args, **kwargs)
            if self._takes_gradient:
                self.name = getattr(own or function, "__name__", type(function).__name__)
            if self._takes_gradient or self._orders:
                replica = tf.convert_to_tensor(tf.distribute.get_replica_context().replica_id_in_sync_group)
                note = functools.partial(self._note_inputs, updates=bool(self._orders))
                tf.numpy_function(note, [replica, *self._tensors((args, kwargs))], [])
            return result

        unconverted = tf.autograph.experimental.do_not_convert(noting)
        return tf.function(unconverted) if own else unconverted

    def _tensors(self, given: Any) -> List[Any]:
        leaves = tf.nest.flatten(given)
        self.unseen = next((type(leaf).__name__ for leaf in leaves if isinstance(leaf, _UNSEEN)), "")
        return list(filter(is_seen, leaves))

    def _note_inputs(self, replica: Any, *tensors: Any, updates: bool) -> None:
        if int(replica) in self._updated_on or len(self.calls) > _MOST_CALLS:
            self._end_second()
            return
        if not self.calls or int(replica) in self.calls[-1]:
            self.calls.append({})
        self.calls[-1][int(replica)] = [np.array(tensor) for tensor in tensors]
        self._updated_on |= {int(replica)} if updates else set()
        if self._is_traced and len(self.calls[-1]) == 1:  # Python calls it when the function has returned
            ctypes.pythonapi.Py_AddPendingCall(self._when_back, None)

    def _back(self, _: Any) -> int:
        files = {frame.f_code.co_filename for frame, _ in traceback.walk_stack(sys._getframe())}  # noqa: SLF001
        raises = errors_impl.__file__ in files or sys.exc_info()[1] is not None
        if script_ops.__file__ in files:
            ctypes.pythonapi.Py_AddPendingCall(self._when_back, None)  # the function has called Python
        elif not raises and self.is_over() and self._ends.acquire(blocking=False):
            self.taken()
        return 0

    def _end_second(self) -> None:
        """The step is over in a second one, too: a ``tf.function`` that takes all of them does not return for long."""
        if self._ends.acquire(blocking=False):
            deadline = time.monotonic() + _LATE_S
            while time.monotonic() < deadline and any(None in some.values() for some in self._gradients.values()):
                time.sleep(_LATE_S / 100)
            self.taken()

    def gradient_of(self, taken: Callable[..., Any]) -> Callable[..., Any]:
        """``GradientTape.gradient`` or ``tf.gradients``, which is seen."""

        def gradient(*args: Any, **kwargs: Any) -> Any:
            self._takes_gradient = True
            self._read_updated()
            self._summed.clear()
            return taken(*args, **kwargs)

        return gradient

    def sum_of(self, reduced: Callable[..., Any]) -> Callable[..., Any]:
        """``batch_reduce_to`` of strategies, which is seen."""

        def batch_reduce_to(extended: Any, operation: Any, pairs: Sequence[Any], *more: Any, **named: Any) -> Any:
            self._summed += [len(pairs)] if operation is tf.distribute.ReduceOp.SUM else []
            return reduced(extended, operation, pairs, *more, **named)

        return batch_reduce_to

    def _read_updated(self) -> None:
        """Note what the variables hold that were updated before this gradient is taken."""
        updated = self._updated.pop(min(self._updated), {}) if self.applies and self._updated else {}
        self._updated.clear()

        def note(*values: Any) -> None:
            for number, value in zip(updated, values):
                self.values.setdefault(number, np.array(value))

        if updated:
            tf.numpy_function(note, [tf.convert_to_tensor(one) for one in updated.values()], [])

    def of_train_on_batch(self, train_on_batch: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """``train_on_batch``, whose step this is."""
        self.trains = True
        try:
            return train_on_batch(*args, **kwargs)
        finally:
            self.trains = False

    def attributes_of(self, kind: Any) -> Callable[[Any, str], Any]:
        """``__getattribute__`` of optimizers. XLA, which Keras 2 uses for their steps, has no place for notes."""
        inherited = kind.__getattribute__

        def attribute(optimizer: Any, name: str) -> Any:
            found = inherited(optimizer, name)
            if name not in ("update_step", *_OF_KERAS_2):
                return False if name == "jit_compile" else found
            self.is_optimized = True
            return self._update_step(found, is_sparse=name == _OF_KERAS_2[1])

        return attribute

    def _update_step(self, found: Callable[..., Any], *, is_sparse: bool) -> Any:
        """Notes the gradient of the variable on each device."""

        def update(gradient: Any, variable: Any, *more: Any, **named: Any) -> Any:
            if not self._is_inside:  # one device would take other examples
                self._note_outside()
                return found(gradient, variable, *more, **named)
            device = variable.device
            number = next(self._orders.setdefault(device, itertools.count()))
            size = variable.shape.num_elements()
            whole = tf.IndexedSlices(gradient, more[0], variable.shape) if is_sparse else gradient
            if not isinstance(whole, tf.IndexedSlices) or size <= _LARGEST:
                some = slice(None, None, 1 + size // _MOST)
                pair = [tf.reshape(tf.convert_to_tensor(one), [-1])[some] for one in (whole, variable)]
                pair = [tf.cast(one, tf.float32) for one in pair]

                def note(*values: Any) -> None:
                    self._note(device, number, values)

                self._gradients.setdefault(device, {}).setdefault(number, None)
                tf.numpy_function(note, pair, [])
            self._updated.setdefault(device, {})[number] = variable
            if self.applies:
                return found(gradient, variable, *more, **named)
            return variable.assign(self.values[number]) if number in self.values else None

        return tf.autograph.experimental.do_not_convert(update)

    def _note_outside(self) -> None:
        if not self.is_outside:
            self.is_outside = True
            timer = threading.Timer(_OUTSIDE_S, lambda: self.on_one_device() if self._before is None else None)
            timer.daemon = True
            timer.start()

    def _note(self, device: str, number: int, values: Sequence[Any]) -> None:
        gradients = self._gradients[device]
        if gradients[number] is not None:
            self._end_second()
        else:
            gradients[number] = np.array(values[0]), np.array(values[1])
