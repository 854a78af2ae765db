from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Rollback, Severity
from kdoctor_checks._gpus import configure, judge, readings, smi


@check("gpu.mig-mode", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def mig_mode(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU is partitioned by MIG (Multi-Instance GPU).

    Why: a CUDA process sees only one MIG instance, and instances have no peer-to-peer access. A strategy for several
    GPUs then trains on one replica, without an error.
    Remedy: turn MIG off for multi-GPU training, or run one process per instance without a strategy.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/mig-user-guide/deployment-considerations.html
        https://github.com/pytorch/pytorch/issues/130181
        https://github.com/tensorflow/tensorflow/issues/57385
    Failure modes: mig_single_device
    """
    judged, others = readings(gpus, "mig_mode")
    yield from others
    divided = [gpu for gpu in judged if gpu.mig_mode]
    for gpu in judged:
        yield judge(
            gpu.subject,
            f"MIG is {'on' if gpu.mig_mode else 'off'}",
            ok=not gpu.mig_mode,
            expected="MIG off",
            remedy=configure(
                "Stop all processes on the GPU and turn MIG off. This deletes its instances and resets the GPU.",
                f"sudo {smi(divided, '-mig 0', among=gpus)}",
                look=("nvidia-smi mig -lgi",),
            ),
            rollback=Rollback.to(
                "turn MIG on again (its instances are not restored)", f"sudo {smi(divided, '-mig 1', among=gpus)}"
            ),
        )
