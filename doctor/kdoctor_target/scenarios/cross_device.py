"""The ways in which MirroredStrategy adds up gradients over the devices, each on its own."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import (
    Batches,
    describe_strategy,
    inspect_weights,
    regression,
    replica_devices,
    train_mirrored,
    train_reference,
)

STEPS = 6
PER_REPLICA = 8


def hierarchical_copy(case: Case) -> None:
    """Copies along a tree of the devices: what MirroredStrategy takes on machines without NCCL."""
    _train(case, tf.distribute.HierarchicalCopyAllReduce())


def reduction_to_one_device(case: Case) -> None:
    """Everything is added up on one device and copied back."""
    _train(case, tf.distribute.ReductionToOneDevice())


def nccl(case: Case) -> None:
    """NVIDIA's collectives: what MirroredStrategy takes on GPUs."""
    if case.devices_kind != "gpu":
        case.skip("NCCL exchanges data between NVIDIA GPUs, and this training is on the CPU")
    _train(case, tf.distribute.NcclAllReduce())


def _train(case: Case, communication: Any) -> None:
    case.phase("strategy")
    strategy = tf.distribute.MirroredStrategy(replica_devices(case), cross_device_ops=communication)
    describe_strategy(case, strategy)
    global_batch = PER_REPLICA * strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * global_batch)
    batches = Batches(inputs, targets, global_batch)
    reference = train_reference(case, batches, normalised=False)
    model = train_mirrored(case, strategy, batches, normalised=False)
    inspect_weights(case, strategy, model, reference)


CASES = {"hierarchical-copy": hierarchical_copy, "reduction-to-one-device": reduction_to_one_device, "nccl": nccl}
