"""Trainings without random numbers, which differ between one device and several replicas by design.

Or with all of them added up, to compare those of the replicas.
"""

from __future__ import annotations

import contextlib
import inspect
import pickle
import random
import sys
from typing import Any, Callable, Iterator

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import tensor_util
from tensorflow.python.ops import gen_random_ops, gen_stateless_random_ops_v2

_STATELESS = {
    "random_uniform": "stateless_random_uniform_v2",
    "random_uniform_int": "stateless_random_uniform_int_v2",
    "random_standard_normal": "stateless_random_normal_v2",
    "truncated_normal": "stateless_truncated_normal_v2",
}
"""The operations that draw, by name, and those that draw the same whenever they are executed. ``tf.random``, ``tf.nn``
and Keras call them in these modules."""
_SEED = (3, 5)
_KEY = 88
"""With it, the first uniform number is almost 1, so that what is drawn for whole examples drops none."""
_GENERATOR = "global_seed_generator"
"""What ``keras.random`` uses without a seed. Keras makes one for each thread."""


@contextlib.contextmanager
def random_numbers_fixed(*, fixed: bool = True) -> Iterator[None]:
    """Let TensorFlow, and Keras with it, draw the same numbers for each row, if ``fixed``.

    What is traced meanwhile keeps them. So a model that samples (VAE, GAN) can be compared with one device.
    """
    if not fixed:
        yield
        return
    with _replaced(_same_for_each_row):
        yield


@contextlib.contextmanager
def random_numbers_repeated() -> Iterator[None]:
    """Let what is made meanwhile draw what it drew the last time, as random features that are not weights.

    The generators of Python and NumPy are not restored.
    """
    eager = context.context()
    kept = eager._seed, getattr(eager, "_rng", None)  # noqa: SLF001 - of tf.random.set_seed
    random.seed(_SEED[0])
    np.random.seed(_SEED[0])  # noqa: NPY002 - what the job's code may use
    tf.random.set_seed(_SEED[0])
    of_thread: Any = sys.modules.get("keras.src.backend.common.global_state")  # of Keras 3
    generator = of_thread and of_thread.get_global_attribute(_GENERATOR)
    if of_thread:
        of_thread.set_global_attribute(_GENERATOR, None)
    try:
        yield
    finally:
        eager._seed, eager._rng = kept  # noqa: SLF001
        if of_thread:
            of_thread.set_global_attribute(_GENERATOR, generator)


def seed_numpy(model: Any) -> None:
    """Let NumPy draw the same whenever a step is traced."""
    step = model.train_step

    def seeded(data: Any) -> Any:
        np.random.seed(_SEED[0])  # noqa: NPY002 - what the job's code may use; it is restored
        return step(data)

    model.train_step = seeded


def watch_numpy(model: Any) -> Callable[[], bool]:
    """Have the model's ``train_step`` watched; the function says whether NumPy drew numbers while it was traced."""
    step, seen = model.train_step, []

    def watched(data: Any) -> Any:
        before = pickle.dumps(np.random.get_state())  # noqa: NPY002 - what the job's code may use
        made = step(data)
        seen.append(before != pickle.dumps(np.random.get_state()))  # noqa: NPY002
        return made

    model.train_step = watched
    return lambda: any(seen) and not model.run_eagerly


@contextlib.contextmanager
def random_numbers_added(total: Any) -> Iterator[None]:
    """Let the numbers that TensorFlow draws in a step be added to this variable."""

    def adding(_: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def drawn(*arguments: Any, **named: Any) -> Any:
            made = function(*arguments, **named)
            if tf.executing_eagerly() or tf.distribute.in_cross_replica_context():
                return made
            total.assign_add(tf.reduce_sum(tf.cast(made, total.dtype)))
            return made

        return drawn

    with _replaced(adding):
        yield


@contextlib.contextmanager
def _replaced(other: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    places = [(gen_random_ops, name) for name in _STATELESS]
    places += [(gen_stateless_random_ops_v2, name) for name in _STATELESS.values()]
    kept = [(module, name, getattr(module, name)) for module, name in places]
    try:
        for module, name, function in kept:
            setattr(module, name, other(name, function))
        yield
    finally:
        for module, name, function in kept:
            setattr(module, name, function)


def _same_for_each_row(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    signature, draw = inspect.signature(function), getattr(gen_stateless_random_ops_v2, _STATELESS.get(name, name))

    def drawn(*arguments: Any, **named: Any) -> Any:
        given = signature.bind(*arguments, **named).arguments
        shape = tf.cast(given["shape"], "int32")
        rows = tf.concat([tf.ones_like(shape[:1]), shape[1:]], 0)
        more = {name: given[name] for name in ("dtype", "minval", "maxval") if name in given}
        key, counter = tf.constant([_KEY], tf.uint64), tf.constant(_SEED, tf.uint64)
        made = tf.broadcast_to(draw(rows, key=key, counter=counter, alg=1, **more), shape)
        made.set_shape(tensor_util.constant_value_as_shape(shape))
        return made

    return drawn
