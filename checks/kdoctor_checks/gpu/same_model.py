from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import NotApplicable, Outcome, Rollback, Severity
from kdoctor_checks._gpus import answering, configure, judge, size, unread


@check("gpu.same-model", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def same_model(gpus: Gpus, *, memory_tolerance: float = 0.02) -> Iterator[Outcome]:
    """All GPUs have the same model, compute capability and memory size.

    Why: replicas of a synchronous strategy wait for each other, so the slowest GPU limits the speed and the smallest
    memory limits the batch. TensorFlow ignores a GPU with far fewer multiprocessors, without an error ("Ignoring
    visible gpu device").
    Remedy: hide the odd GPU from the job, or run the job on identical GPUs.
    Sources:
        https://www.tensorflow.org/guide/distributed_training
        https://github.com/tensorflow/tensorflow/issues/32489
    Failure modes: slow_gpu_dropped
    """
    if len(gpus.devices) == 1:
        yield NotApplicable(reason="only one GPU")
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
        yield judge(
            gpu.subject,
            f"{gpu.name}, compute capability {gpu.compute_capability}, {size(gpu.memory_total_bytes or 0)}",
            ok=gpu in peers and not differs,
            expected=f"{name}, compute capability {capability}, {size(memory)}, as for most GPUs",
            remedy=configure(
                "Train on the identical GPUs only: set CUDA_VISIBLE_DEVICES to their UUIDs.",
                "nvidia-smi -L",
                "export CUDA_VISIBLE_DEVICES='GPU-<uuid>,GPU-<uuid>'",
            ),
            rollback=Rollback.to("make all GPUs visible again", "unset CUDA_VISIBLE_DEVICES"),
        )
