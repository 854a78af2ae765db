from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import get_args

from kdoctor.check import check
from kdoctor.facts import Gpu, GpuPair, Gpus, TopologyLevel
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, answering, choose_gpus, nvlinks
from kdoctor_checks.topology._mesh import built_with_gaps, short_of_links
from kdoctor_checks.topology._p2p import links_down, unanswered_pairs

_LEVELS: tuple[str, ...] = get_args(TopologyLevel)


@check("topology.pairs", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def pairs(gpus: Gpus, *, farthest: TopologyLevel = "NODE") -> Iterator[Outcome]:
    """All pairs of GPUs are in the same NUMA node or connected by NVLink.

    Why: all GPUs exchange gradients in every step. Between sockets (SYS) they cross the CPU interconnect, which is
    slower and on many machines rules out peer access. GPUs that are connected by NVLink use it, wherever they are on
    PCIe. Some machines were built with NVLinks between some pairs only (DGX-1, POWER). Each of their GPUs has as many;
    NCCL routes around the gaps, and they are not a fault.
    Remedy: train on GPUs of one socket, or accept the slower path.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    if gpus.count == 1 == len(gpus.devices):
        yield NotApplicable(reason="only one GPU")
        return
    read = {frozenset((pair.first, pair.second)): pair for pair in gpus.pairs}
    present = answering(gpus)
    found = [
        read.get(frozenset((one.index, two.index)), GpuPair.of(one, two, error="not requested"))
        for one, two in combinations(present, 2)
    ]
    near = [pair for pair in found if _is_near(pair, farthest)]
    value, remedy = _value(near, found), _remedy(present, near)
    short = short_of_links(gpus)
    mesh = built_with_gaps(gpus) or next((odd.usual for odd in short.values()), None)
    for pair in found:
        if mesh and not _is_near(pair, farthest) and not {pair.first, pair.second} <= short.keys():
            observed = f"{pair.level or 'no NVLink'}; this machine links only some pairs, {mesh} NVLinks for each GPU"
            yield Evidence(subject=pair.subject, observed=observed)
        else:
            yield _judge(pair, gpus, farthest, value, remedy)
    if found:
        yield from unanswered_pairs(gpus)
    elif len(present) == 1 < len(gpus.devices):
        yield NotApplicable(reason="only one GPU responds (gpu.responding)")
    else:
        yield _no_pair(gpus, present)


def _no_pair(gpus: Gpus, present: Sequence[Gpu]) -> Outcome:
    if gpus.count is None or gpus.count > len(gpus.devices):
        missing = gpus.errors.get("count") or gpus.errors.get("devices") or "no reason given"
        return Unjudged(subject="GPUs", reason=f"fewer than two were read ({missing})")
    return NotApplicable(reason=f"{counted(len(present), 'GPU')} to compare")


def _is_near(pair: GpuPair, farthest: TopologyLevel) -> bool:
    return bool(pair.nvlinks) or (pair.level is not None and _LEVELS.index(pair.level) <= _LEVELS.index(farthest))


def _value(near: Sequence[GpuPair], found: Sequence[GpuPair]) -> str:
    """The paths between the near pairs, for the family's line."""
    paths = list(dict.fromkeys(f"NVLink (NV{pair.nvlinks})" if pair.nvlinks else f"{pair.level}" for pair in near))
    where = "both GPUs" if len(found) == 1 else "every pair"
    if len(near) < len(found):
        where = f"{len(near)} of {counted(len(found), 'pair')}"
    return f"{' or '.join(paths)} between {where}"


def _judge(pair: GpuPair, gpus: Gpus, farthest: TopologyLevel, value: str, remedy: Remedy) -> Outcome:
    if _is_near(pair, farthest):
        return Evidence(
            subject=pair.subject, observed=f"NV{pair.nvlinks}" if pair.nvlinks else f"{pair.level}", brief=value
        )
    if pair.level is None:
        return Unjudged(subject=pair.subject, reason=f"distance not read ({pair.error or 'no reason given'})")
    if nvlinks(pair) is None:
        error = pair.errors.get("nvlinks", "no reason given")
        return Unjudged(subject=pair.subject, reason=f"{pair.level}, but its NVLinks were not read ({error})")
    return Finding(
        subject=pair.subject,
        observed=f"PCIe distance {pair.level}, without NVLink",
        expected=f"{farthest} or closer, or NVLink",
        remedy=remedy,
        rollback=Rollback.to("make all GPUs visible again", "unset CUDA_VISIBLE_DEVICES"),
        explained_by=links_down(pair, gpus),
    )


def _remedy(present: Sequence[Gpu], near: Sequence[GpuPair]) -> Remedy:
    """Train on the largest set of GPUs that are all near each other, if there is one."""
    joined = {frozenset((pair.first, pair.second)) for pair in near}
    best: list[int] = []
    indices = [gpu.index for gpu in present]
    for start in indices:
        chosen = [start]
        for other in indices:
            if other != start and all(frozenset((other, one)) in joined for one in chosen):
                chosen.append(other)
        best = max(best, sorted(chosen), key=len)
    look = ("nvidia-smi topo -m",)
    if len(best) < 2:  # noqa: PLR2004 - a pair
        return Remedy.configure("Accept the slower path, or use GPUs of one socket.", look=look)
    return Remedy.configure(
        f"Train on the {counted(len(best), 'GPU')} that are near each other, or accept the slower path.",
        *choose_gpus([gpu for gpu in present if gpu.index in best]),
        look=look,
    )
