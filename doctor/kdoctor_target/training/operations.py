"""Operations with implementations that are known to be nondeterministic.

Many threads add in an undefined order, and float32 rounding depends on the order. These are the operations used in
trainings that TensorFlow's ``enable_op_determinism`` replaces, refuses or serialises.

Sources: https://www.tensorflow.org/api_docs/python/tf/config/experimental/enable_op_determinism,
https://github.com/NVIDIA/framework-reproducibility/blob/master/doc/d9m/tensorflow.md
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import numpy as np
import tensorflow as tf

Operation = Callable[[], Any]

_SIDE = 32
_ROWS = 20000
_SEED = 5


def operations() -> Dict[str, Operation]:
    """Name to a function without arguments that computes it on the current device, with the same inputs each time."""
    numbers = np.random.RandomState(2)

    def random(*shape: int) -> Any:
        return tf.constant(numbers.standard_normal(shape).astype("float32"))

    images, filters, depthwise = random(8, _SIDE, _SIDE, 8), random(3, 3, 8, 8), random(3, 3, 8, 1)
    rows, table, logits = random(_ROWS, 16), random(50, 16), random(_ROWS, 10)
    segments = tf.constant(numbers.randint(0, 50, _ROWS).astype("int32"))
    classes = tf.constant(numbers.randint(0, 10, _ROWS).astype("int32"))
    scale = tf.ones([8])
    return {
        "matrix product": lambda: tf.linalg.matmul(rows, rows, transpose_a=True),
        "convolution's gradients": lambda: _gradients(
            lambda x, y: tf.nn.conv2d(x, y, strides=1, padding="SAME"), images, filters
        ),
        "depthwise convolution's gradients": lambda: _gradients(
            lambda x, y: tf.nn.depthwise_conv2d(x, y, strides=[1, 1, 1, 1], padding="SAME"), images, depthwise
        ),
        "bias' gradient": lambda: _gradients(lambda x: tf.nn.bias_add(images, x), scale),
        "batch normalisation's gradients": lambda: _gradients(
            lambda x, y: tf.compat.v1.nn.fused_batch_norm(x, y, y)[0], images, scale
        ),
        "max pooling's gradient": lambda: _gradients(lambda x: tf.nn.max_pool2d(x, 3, 1, "SAME"), images),
        "resized image's gradient": lambda: _gradients(lambda x: tf.image.resize(x, [48, 48]), images),
        "embedding's gradient": lambda: _gradients(lambda x: tf.gather(x, segments), table),
        "sum by segments": lambda: [tf.math.unsorted_segment_sum(rows, segments, 50)],
        "scattered addition": lambda: [tf.tensor_scatter_nd_add(table, segments[:, tf.newaxis], rows)],
        "cross-entropy's gradient": lambda: _gradients(
            lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(classes, x), logits
        ),
    }


def _gradients(function: Callable[..., Any], *inputs: Any) -> List[Any]:
    """The gradients of the sum of squares: they differ between elements, as in a training."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = tf.reduce_sum(tf.square(function(*inputs)))
    return [tf.convert_to_tensor(one) for one in tape.gradient(result, inputs)]


def random_numbers_in_a_map() -> Any:
    """Random numbers that ``Dataset.map`` draws in parallel, in an undefined order unless it is serialised."""
    tf.random.set_seed(_SEED)

    def noisy(number: Any) -> Any:
        return tf.cast(number, tf.float32) + tf.random.uniform([200])

    data = tf.data.Dataset.range(400).map(noisy, num_parallel_calls=4)
    return [np.stack(list(data.as_numpy_iterator()))]
