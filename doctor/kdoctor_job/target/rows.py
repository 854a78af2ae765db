"""Which examples each step of ``fit`` trains, written down where ``train_step`` gets them."""

from __future__ import annotations

from typing import Any, Callable, List

import numpy as np
import tensorflow as tf

from kdoctor_job.target.batches import last_bit
from kdoctor_job.target.parts import keras_of

Rows = List[List[int]]
"""For each step, a number for each of its examples, in ascending order. Equal examples have equal numbers."""

_MOST_ELEMENTS = 4096
"""Of an example, at equal distances, so that a number costs little memory."""
_FACTOR = 0x9E3779B97F4A7C15 - 2**64
"""Odd, so that no information is lost (Knuth, The Art of Computer Programming, volume 3, section 6.4)."""


def record_rows(strategy: Any, model: Any, steps: int, size: int) -> Callable[[], Rows]:
    """Have the model's ``train_step`` write down its examples. To be called in the scope, before the first step.

    Args:
        strategy: the strategy.
        model: the model.
        steps: the most steps that are written down.
        size: the most examples of a step. Further ones are added to the first.

    Returns:
        A function that reads them.
    """
    of_each = {"trainable": False, "synchronization": tf.VariableSynchronization.ON_READ}
    log, count = tf.Variable(np.zeros((steps, size), "int64"), **of_each), tf.Variable(np.int64(0), **of_each)
    step, tools = model.train_step, keras_of(model).utils

    def recording(data: Any) -> Any:
        inputs = tf.nest.flatten(tools.unpack_x_y_sample_weight(data)[0])
        # Parts of a batch may differ in size.
        row = tf.add_n([_in_row(_numbers(leaf), size) for leaf in inputs])
        place = tf.minimum(count.read_value(), steps - 1)
        log.assign(tf.tensor_scatter_nd_update(log.read_value(), [[place]], [row]))
        # A step that finds the data at its end writes nothing down.
        with tf.control_dependencies([row]):
            count.assign_add(1)
        return step(data)

    def read() -> Rows:
        copies = [copy.numpy() for copy in strategy.experimental_local_results(log)]
        done = max(int(copy.numpy()) for copy in strategy.experimental_local_results(count))
        joined = np.concatenate(copies, axis=1)[:done]
        return [sorted(int(number) for number in row if number) for row in joined]

    model.train_step = recording
    return read


def shake(model: Any) -> None:
    """Have the model's ``train_step`` get inputs whose last bit, as the least precise layer sees it, is another one."""
    step, tools, bit = model.train_step, keras_of(model).utils, last_bit(model)

    def shaken(leaf: Any) -> Any:
        if not leaf.dtype.is_floating:
            return leaf
        signs = 2 * tf.cast(tf.range(tf.size(leaf)) % 2, leaf.dtype) - 1
        least = max(bit, 2.0**-8 if leaf.dtype == tf.bfloat16 else float(np.finfo(leaf.dtype.as_numpy_dtype).eps))
        return leaf * (1 + tf.reshape(signs, tf.shape(leaf)) * tf.cast(least, leaf.dtype))

    def shaking(data: Any) -> Any:
        inputs, *others = tools.unpack_x_y_sample_weight(data)
        return step(tools.pack_x_y_sample_weight(tf.nest.map_structure(shaken, inputs), *others))

    model.train_step = shaking


def _in_row(numbers: Any, size: int) -> Any:
    return tf.math.unsorted_segment_sum(numbers, tf.range(tf.size(numbers)) % size, size)


def _numbers(leaf: Any) -> Any:
    """A number for each example, which depends on the bits of its elements. Integers are added alike in any order."""
    leaf = tf.reshape(leaf, [tf.shape(leaf)[0], -1])
    leaf = leaf[:, :: tf.maximum(1, tf.shape(leaf)[1] // _MOST_ELEMENTS)]
    if leaf.dtype == tf.string:
        bits = tf.strings.to_hash_bucket_fast(leaf, 2**62)
    elif leaf.dtype.is_floating:
        bits = tf.cast(tf.bitcast(tf.cast(leaf, tf.float32), tf.int32), tf.int64)
    else:
        bits = tf.cast(leaf, tf.int64)
    weights = 2 * tf.range(tf.shape(bits, tf.int64)[1], dtype=tf.int64) + 1
    mixed = (bits + 1) * weights * _FACTOR
    return tf.reduce_sum(tf.bitwise.bitwise_xor(mixed, tf.bitwise.right_shift(mixed, 29)) * _FACTOR, axis=1)
