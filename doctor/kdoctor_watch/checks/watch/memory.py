from collections.abc import Iterator
from itertools import pairwise

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import MIB, size
from kdoctor_watch.facts import Watched, WatchedMemory

_REMEDY = Remedy.change_code(
    "Look for lists that keep tensors, for functions that are traced again, and for caches without a limit.",
    look=("ps -o pid,rss,vsz,args -C python3", "nvidia-smi --query-compute-apps=pid,used_memory --format=csv"),
)
_FEW = 8
"""Periods that show a trend."""


@check("watch.memory", severity=Severity.WARNING)
def memory(watched: Watched, *, most_growth: float = 0.1, most_bytes: int = 256 * MIB) -> Iterator[Outcome]:
    """Memory in use does not keep growing.

    Why: memory that grows with each step ends the job after hours or days, when the machine or the GPU has no more. The
    run is divided into periods. The smallest use of each period counts, so that peaks do not matter. It is a finding
    if it rose in each period of the second half.
    Remedy: find what keeps growing: lists of tensors, retraced functions, caches, or data loaders.
    Source: https://www.tensorflow.org/guide/function#leaking_graph_tensors
    """
    if not watched.memory:
        yield Unjudged(subject="process", reason="memory was not read")
    for use in watched.memory:
        yield _judge(use, most_growth, most_bytes)


def _judge(use: WatchedMemory, most_growth: float, most_bytes: int) -> Outcome:
    if len(use.lows) < _FEW:
        seconds = use.every_s * _FEW
        return Unjudged(subject=use.name, reason=f"watched for less than {seconds:.0f} s, which shows no trend")
    half = use.lows[len(use.lows) // 2 - 1 :]
    grown = half[-1] - half[0]
    observed = f"{size(half[0])} in use after half of the run, {size(half[-1])} at its end"
    if not all(first < second for first, second in pairwise(half)) or grown < max(most_bytes, most_growth * half[0]):
        return Evidence(subject=use.name, observed=observed)
    return Finding(
        subject=use.name,
        observed=f"{observed}, growing in each of {len(half) - 1} periods of {use.every_s:.0f} s",
        brief="memory in use keeps growing",
        expected=f"growth of less than {most_growth:.0%}",
        remedy=_REMEDY,
        rollback=Rollback.nothing("not needed (kdoctor changed nothing)"),
    )
