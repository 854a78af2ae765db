"""MultiWorkerMirroredStrategy over the workers that TF_CONFIG names, each of which runs this program on its node.

Measures: ``workers``, their number; ``worker``, the index of this one; ``wrong values``, how many values of an
all-reduced message are not the exact sum; ``all_reduce_gbs``, GB/s that the all-reduce of a large message sends from
each replica (see ``kdoctor_target.training.all_reduce``).
"""

from __future__ import annotations

import time

import tensorflow as tf

from kdoctor_fleet.target.across import read_place, require_port
from kdoctor_target.runner.case import Case
from kdoctor_target.training.all_reduce import bytes_per_s, message_bytes, wrong_values
from kdoctor_target.training.comparison import compare_custom_loop
from kdoctor_target.training.regression import make_batches
from kdoctor_target.training.replicas import describe_strategy, one_thread_each
from kdoctor_target.training.workers import LINGER_S


def custom_loop(case: Case) -> None:
    """Train with the other workers, compare with one device, and all-reduce a large message."""
    case.phase("strategy")
    place = read_place(case)
    case.measure({"workers": len(place.addresses), "worker": place.number})
    require_port(case, place.address)
    one_thread_each(2)
    if case.devices_kind == "gpu":
        gpus = tf.config.list_physical_devices("GPU")
        case.note(gpus_seen=len(gpus))
        tf.config.set_visible_devices(gpus[: case.replicas], "GPU")
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    describe_strategy(case, strategy)
    compare_custom_loop(case, strategy, make_batches(strategy.num_replicas_in_sync)._replace(by_example=True))
    case.phase("all-reduce")
    size = message_bytes(case)
    case.measure({"wrong values": wrong_values(strategy, size)})
    case.measure({"all_reduce_gbs": bytes_per_s(strategy, size) / 1e9})
    time.sleep(LINGER_S)
