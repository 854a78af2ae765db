"""Whether the GPUs are whole."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import readings, smi


@check("gpu.mig-mode", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def mig_mode(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU is split by MIG (Multi-Instance GPU).

    Why: a CUDA process sees one MIG instance only, however many there are, and there is no peer-to-peer traffic
    between instances. A strategy over several GPUs then trains on one replica, without an error.
    Remedy: switch MIG off on machines for multi-GPU training, or run one process per instance without a strategy.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/mig-user-guide/deployment-considerations.html
        https://github.com/pytorch/pytorch/issues/130181
        https://github.com/tensorflow/tensorflow/issues/57385
    Failure modes: mig_single_device
    """
    judged, others = readings(gpus, "mig_mode")
    yield from others
    for gpu in judged:
        if not gpu.mig_mode:
            yield Evidence(subject=gpu.subject, observed="MIG mode off")
            continue
        yield Finding(
            subject=gpu.subject,
            observed="MIG mode on",
            expected="MIG mode off",
            remedy=Remedy(
                summary="End all that uses the GPU and switch MIG off (its instances are lost); the GPU is reset.",
                action=Action.CONFIGURE,
                commands=("nvidia-smi mig -lgi", f"sudo {smi(gpu, '-mig 0')}"),
            ),
            rollback=Rollback.to("MIG on, as recorded; its instances must be made anew", f"sudo {smi(gpu, '-mig 1')}"),
        )
