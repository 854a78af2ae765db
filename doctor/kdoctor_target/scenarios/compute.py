"""How fast TensorFlow multiplies matrices and copies memory on each device (see ``training.compute``)."""

from __future__ import annotations

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compute import Work, measure_each, numbers
from kdoctor_target.training.isolated import list_devices, take_devices


def each_device(case: Case) -> None:
    """Measure every device."""
    measure_each(case, list_devices, _prepare)


def _prepare(case: Case, index: int) -> Work:
    with tf.device(take_devices(case, [index])[0]):
        made = {name: tf.constant(array) for name, array in numbers(case.devices_kind).items()}
        matrix, memory = made["matrix"], made["memory"]
        return Work(
            product=lambda: tf.matmul(matrix, matrix),
            copy=lambda: memory + 1.0,
            wait=lambda result: result[..., :1].numpy(),
        )
