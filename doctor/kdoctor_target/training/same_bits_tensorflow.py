"""The programs of ``training.same_bits`` with TensorFlow."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, List, Sequence

import tensorflow as tf

from kdoctor_target.training.regression import LEARNING_RATE, dense_model, make_batches
from kdoctor_target.training.same_bits import PRODUCTS, STEPS, Programs, Sizes, inputs

_KINDS = ("float32", "float16", "bfloat16")
"""TensorFlow multiplies no matrices of float8."""


def models_of(devices: Sequence[str]) -> List[str]:
    """The model of each device; parts of a CPU are equal."""
    gpus = tf.config.get_visible_devices("GPU")  # in the order of the logical ones
    models = []
    for device in devices:
        kind, number = device.rpartition("device:")[2].split(":")
        details = tf.config.experimental.get_device_details(gpus[int(number)]) if kind == "GPU" else {}
        models.append(str(details.get("device_name", device)) if kind == "GPU" else kind)
    return models


def make_programs(devices: Sequence[str], sizes: Sizes, *, trains: bool) -> Programs:
    """The programs on these devices; with ``trains``, those that need op determinism, too."""
    made = [_programs(device, sizes, trains=trains) for device in devices]

    def run(name: str, place: int) -> Any:
        with tf.device(devices[place]):
            return made[place][name]()

    return Programs(names=list(made[0]), run=run, differs=_differs)


def _programs(device: str, sizes: Sizes, *, trains: bool) -> Dict[str, Callable[[], Any]]:
    """What each program computes, operation by operation: nothing is traced or compiled in the job's process."""
    with tf.device(device):
        given = {name: tf.constant(array) for name, array in inputs(sizes).items()}
        programs: Dict[str, Callable[[], Any]] = {
            f"product {kind}": partial(_product, tf.cast(given["matrix"], kind), PRODUCTS[kind] * sizes.products)
            for kind in _KINDS
        }
        if trains and "GPU" in device:
            tensor_float = partial(_product, given["matrix"], PRODUCTS["float16"] * sizes.products)
            programs["product TensorFloat-32"] = partial(_with_tensor_float_32, tensor_float)
        heads = [tf.cast(given[name], tf.float16) for name in ("query", "key", "value")]
        programs["attention"] = partial(_attention, *heads)
        programs["reductions"] = partial(_reductions, given["matrix"])
        if not trains:
            return programs
        programs["convolution"] = partial(_convolution, given["images"], given["filters"])
        programs["convolution gradients"] = partial(_gradients, given["images"], given["filters"])
        programs["training"] = _training(sizes.units)
        return programs


def _product(factor: Any, products: int) -> Any:
    result = factor
    for _ in range(products):
        result = tf.linalg.matmul(result, factor)
    return result


def _with_tensor_float_32(product: Callable[[], Any]) -> Any:
    tf.config.experimental.enable_tensor_float_32_execution(True)  # noqa: FBT003 - TensorFlow's signature
    try:
        return product()
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(False)  # noqa: FBT003


def _attention(query: Any, key: Any, value: Any) -> Any:
    scores = tf.linalg.matmul(query, key, transpose_b=True) / tf.sqrt(tf.cast(query.shape[-1], query.dtype))
    return tf.linalg.matmul(tf.nn.softmax(scores), value)


def _reductions(matrix: Any) -> Any:
    """Sums, moments and a softmax over rows and columns, of numbers that pass through elementary functions."""
    numbers = tf.tanh(matrix) + tf.exp(-tf.square(matrix)) + tf.math.rsqrt(1 + tf.abs(matrix))
    rows = tf.reduce_sum(numbers, 1) + tf.math.reduce_variance(numbers, 1) + tf.reduce_max(numbers, 1)
    columns = tf.reduce_mean(numbers, 0) + tf.reduce_logsumexp(numbers, 0)
    return tf.concat([rows, columns, tf.reshape(tf.nn.softmax(numbers), [-1])], 0)


def _convolution(images: Any, filters: Any) -> Any:
    return tf.nn.conv2d(images, filters, strides=1, padding="SAME")


def _gradients(images: Any, filters: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch([images, filters])
        result = tf.reduce_sum(tf.square(_convolution(images, filters)))
    return _flat(tape.gradient(result, [images, filters]))


def _training(units: int) -> Callable[[], Any]:
    """A few steps of gradient descent, always from the same weights."""
    given, wanted, *_ = make_batches(1)
    model = dense_model(tf.keras, units=units, normalised=True)
    at_first = [tf.constant(weights) for weights in model.get_weights()]

    def training() -> Any:
        for variable, weights in zip(model.weights, at_first):
            variable.assign(weights)
        for _ in range(STEPS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(given, training=True) - wanted))
            gradients = tape.gradient(loss, model.trainable_variables)
            for variable, gradient in zip(model.trainable_variables, gradients):
                variable.assign_sub(LEARNING_RATE * gradient)
        return _flat([tf.convert_to_tensor(variable) for variable in model.weights])

    return training


def _flat(tensors: Sequence[Any]) -> Any:
    return tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], 0)


def _differs(one: Any, other: Any) -> Any:
    return tf.reduce_any(tf.not_equal(tf.bitcast(one, tf.uint8), tf.bitcast(other, tf.uint8)))
