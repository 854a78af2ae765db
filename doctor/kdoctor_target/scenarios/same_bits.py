"""The programs of ``training.same_bits`` with TensorFlow and its Keras, on all replicas' devices at once."""

from __future__ import annotations

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import replica_devices
from kdoctor_target.training.same_bits import SIZES, compare
from kdoctor_target.training.same_bits_tensorflow import make_programs, models_of


def all_devices(case: Case) -> None:
    """Compare all devices."""
    case.phase("strategy")
    names = replica_devices(case)
    case.note(devices=names, replicas=len(names))
    tf.keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    case.phase("build")
    compare(case, make_programs(names, SIZES[case.devices_kind], trains=True), models_of(names))
