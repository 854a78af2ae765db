"""Trainings without random numbers, which differ between one device and several replicas by design."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable, Iterator

import tensorflow as tf
from tensorflow.python.framework import tensor_util

_NAMES = [f"{kind}{name}" for name in ("normal", "uniform", "truncated_normal") for kind in ("", "stateless_")]
_SEED = (3, 5)


@contextlib.contextmanager
def random_numbers_fixed(*, fixed: bool = True) -> Iterator[None]:
    """Let the functions of ``tf.random``, which Keras uses too, draw the same numbers for each row, if ``fixed``.

    What is traced meanwhile keeps them. So a model that samples (VAE, GAN) can be compared with one device.
    """
    kept = {name: getattr(tf.random, name) for name in _NAMES if fixed}
    try:
        for name, function in kept.items():
            setattr(tf.random, name, _same_for_each_row(function, f"stateless_{name.rpartition('stateless_')[2]}"))
        yield
    finally:
        for name, function in kept.items():
            setattr(tf.random, name, function)


def _same_for_each_row(function: Callable[..., Any], stateless: str) -> Callable[..., Any]:
    signature, draw = inspect.signature(function), getattr(tf.random, stateless)

    def drawn(*arguments: Any, **named: Any) -> Any:
        given = signature.bind(*arguments, **named).arguments
        shape = tf.convert_to_tensor(given.pop("shape"), "int32")
        rows = tf.concat([tf.ones_like(shape[:1]), shape[1:]], 0)
        made = tf.broadcast_to(draw(rows, **{**given, "seed": _SEED}), shape)
        made.set_shape(tensor_util.constant_value_as_shape(shape))
        return made

    return drawn
