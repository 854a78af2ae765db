"""The algorithms by which MirroredStrategy adds gradients across devices, each in a case."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_fit
from kdoctor_target.training.replicas import describe_strategy, replica_devices


def hierarchical_copy(case: Case) -> None:
    """Copies along a tree of the devices: the default without NCCL."""
    _train(case, tf.distribute.HierarchicalCopyAllReduce())


def reduction_to_one_device(case: Case) -> None:
    """Everything is added up on one device and copied back."""
    _train(case, tf.distribute.ReductionToOneDevice())


def nccl(case: Case) -> None:
    """NVIDIA's collectives: the default on GPUs."""
    if case.devices_kind != "gpu":
        case.skip("NCCL requires NVIDIA GPUs; this training runs on the CPU")
    _train(case, tf.distribute.NcclAllReduce())


def _train(case: Case, communication: Any) -> None:
    case.phase("strategy")
    strategy = tf.distribute.MirroredStrategy(replica_devices(case), cross_device_ops=communication)
    describe_strategy(case, strategy)
    compare_fit(case, strategy)
