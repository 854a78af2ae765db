"""How far apart the GPUs are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import get_args

from kdoctor.check import check
from kdoctor.facts import GpuPair, Gpus, TopologyLevel
from kdoctor.model import (
    Action,
    Evidence,
    Finding,
    NotApplicable,
    Outcome,
    Remedy,
    Rollback,
    Severity,
    Unjudged,
)
from kdoctor_checks._gpus import answering, nvlinks

_LEVELS: tuple[str, ...] = get_args(TopologyLevel)


@check("topology.pairs", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def pairs(gpus: Gpus, *, farthest: TopologyLevel = "NODE") -> Iterator[Outcome]:
    """No two GPUs are farther apart than one NUMA node, unless NVLink joins them.

    Why: the gradients of every step travel between all GPUs. Between sockets (SYS) they cross the processors'
    interconnect, which is slower and on many machines excludes direct peer access. Where NVLink joins two GPUs, their
    traffic takes it, and their places on PCIe do not matter.
    Remedy: train on GPUs of one socket, or start knowingly.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    if gpus.count == 1 == len(gpus.devices):
        yield NotApplicable(reason="there is one GPU")
        return
    read = {frozenset((pair.first, pair.second)): pair for pair in gpus.pairs}
    present = [gpu.index for gpu in answering(gpus)]
    for first, second in combinations(present, 2):
        pair = read.get(
            frozenset((first, second)), GpuPair(first=first, second=second, level=None, error="not asked for")
        )
        yield _judge(pair, farthest)
    if len(present) == 1 < len(gpus.devices):
        yield NotApplicable(reason="only one GPU answers (gpu.responding)")


def _judge(pair: GpuPair, farthest: TopologyLevel) -> Outcome:
    if pair.nvlinks:
        return Evidence(subject=pair.subject, observed=f"NV{pair.nvlinks}")
    if pair.level is None:
        return Unjudged(subject=pair.subject, reason=f"its level was not read ({pair.error or 'no reason given'})")
    if _LEVELS.index(pair.level) <= _LEVELS.index(farthest):
        return Evidence(subject=pair.subject, observed=pair.level)
    if nvlinks(pair) is None:
        error = pair.errors.get("nvlinks", "no reason given")
        return Unjudged(subject=pair.subject, reason=f"{pair.level}, but its NVLinks were not read ({error})")
    return Finding(
        subject=pair.subject,
        observed=f"{pair.level}, no NVLink",
        expected=f"{farthest} or nearer over PCIe, or NVLink between them",
        remedy=Remedy(
            summary="Train on GPUs of one socket, or start knowingly.",
            action=Action.CONFIGURE,
            commands=("nvidia-smi topo -m", "export CUDA_VISIBLE_DEVICES='<GPUs of one NUMA node>'"),
        ),
        rollback=Rollback.to("all GPUs visible", "unset CUDA_VISIBLE_DEVICES"),
    )
