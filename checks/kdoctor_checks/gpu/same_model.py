"""Whether the replicas run on equal GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import (
    Action,
    Evidence,
    Finding,
    NotApplicable,
    Outcome,
    Remedy,
    Rollback,
    Severity,
)
from kdoctor_checks._gpus import answering, size, unread


@check("gpu.same-model", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def same_model(gpus: Gpus, *, memory_tolerance: float = 0.02) -> Iterator[Outcome]:
    """All GPUs are of one model, one compute capability and one memory size.

    Why: the replicas of a synchronous strategy wait for each other, so the slowest GPU sets the pace and the
    smallest memory the batch. TensorFlow leaves a GPU with far fewer multiprocessors out without an error
    ("Ignoring visible gpu device").
    Remedy: hide the odd GPU from the job, or move the job to equal GPUs.
    Sources:
        https://www.tensorflow.org/guide/distributed_training
        https://github.com/tensorflow/tensorflow/issues/32489
    Failure modes: slow_gpu_dropped
    """
    if len(gpus.devices) == 1:
        yield NotApplicable(reason="there is one GPU")
        return
    read: list[Gpu] = []
    for gpu in answering(gpus):
        if problem := unread(gpu, "name", "compute_capability", "memory_total_bytes"):
            yield problem
        else:
            read.append(gpu)
    if not read:
        return
    (name, capability), _ = Counter((gpu.name, gpu.compute_capability) for gpu in read).most_common(1)[0]
    peers = [gpu for gpu in read if (gpu.name, gpu.compute_capability) == (name, capability)]
    memory = Counter(gpu.memory_total_bytes or 0 for gpu in peers).most_common(1)[0][0]
    for gpu in read:
        differs = abs((gpu.memory_total_bytes or 0) - memory) > memory_tolerance * memory
        if gpu not in peers or differs:
            yield _odd(gpu, f"{name}, compute capability {capability}, {size(memory)}, as most of them")
        else:
            yield Evidence(subject=gpu.subject, observed=_describe(gpu))


def _describe(gpu: Gpu) -> str:
    return f"{gpu.name}, compute capability {gpu.compute_capability}, {size(gpu.memory_total_bytes or 0)}"


def _odd(gpu: Gpu, expected: str) -> Finding:
    return Finding(
        subject=gpu.subject,
        observed=_describe(gpu),
        expected=expected,
        remedy=Remedy(
            summary="Train on the equal GPUs alone: name them in CUDA_VISIBLE_DEVICES by their UUIDs.",
            action=Action.CONFIGURE,
            commands=("nvidia-smi -L", "export CUDA_VISIBLE_DEVICES='GPU-<uuid>,GPU-<uuid>'"),
        ),
        rollback=Rollback.to("all GPUs visible", "unset CUDA_VISIBLE_DEVICES"),
    )
