from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import get_args

from kdoctor.check import check
from kdoctor.facts import GpuPair, Gpus, TopologyLevel
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import answering, configure, nvlinks

_LEVELS: tuple[str, ...] = get_args(TopologyLevel)


@check("topology.pairs", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def pairs(gpus: Gpus, *, farthest: TopologyLevel = "NODE") -> Iterator[Outcome]:
    """All pairs of GPUs are in the same NUMA node or connected by NVLink.

    Why: all GPUs exchange gradients in every step. Between sockets (SYS) they cross the CPU interconnect, which is
    slower and on many machines rules out peer access. GPUs that are connected by NVLink use it, wherever they are on
    PCIe.
    Remedy: train on GPUs of one socket, or accept the slower path.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    if gpus.count == 1 == len(gpus.devices):
        yield NotApplicable(reason="only one GPU")
        return
    read = {frozenset((pair.first, pair.second)): pair for pair in gpus.pairs}
    present = [gpu.index for gpu in answering(gpus)]
    for first, second in combinations(present, 2):
        pair = read.get(
            frozenset((first, second)), GpuPair(first=first, second=second, level=None, error="not requested")
        )
        yield _judge(pair, farthest)
    if len(present) == 1 < len(gpus.devices):
        yield NotApplicable(reason="only one GPU responds (gpu.responding)")


def _judge(pair: GpuPair, farthest: TopologyLevel) -> Outcome:
    if pair.nvlinks:
        return Evidence(subject=pair.subject, observed=f"NV{pair.nvlinks}")
    if pair.level is None:
        return Unjudged(subject=pair.subject, reason=f"distance not read ({pair.error or 'no reason given'})")
    if _LEVELS.index(pair.level) <= _LEVELS.index(farthest):
        return Evidence(subject=pair.subject, observed=pair.level)
    if nvlinks(pair) is None:
        error = pair.errors.get("nvlinks", "no reason given")
        return Unjudged(subject=pair.subject, reason=f"{pair.level}, but its NVLinks were not read ({error})")
    return Finding(
        subject=pair.subject,
        observed=f"PCIe distance {pair.level}, without NVLink",
        expected=f"{farthest} or closer, or NVLink",
        remedy=configure(
            "Train on GPUs of one socket, or accept the slower path.",
            "nvidia-smi topo -m",
            "export CUDA_VISIBLE_DEVICES='<GPUs of one NUMA node>'",
        ),
        rollback=Rollback.to("make all GPUs visible again", "unset CUDA_VISIBLE_DEVICES"),
    )
