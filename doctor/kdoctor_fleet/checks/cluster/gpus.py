from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Action, Outcome, Severity
from kdoctor_fleet.checks.cluster._compare import Comparison, compare
from kdoctor_fleet.checks.cluster._fixes import by_hand
from kdoctor_fleet.facts import Fleet

_FIX = by_hand(
    "Leave out {nodes}, or find out why GPUs are missing or other ones are installed.",
    Action.INSPECT_HARDWARE,
    "nvidia-smi -L",
)


@check("cluster.gpus", severity=Severity.ERROR)
def gpus(fleet: Fleet) -> Iterator[Outcome]:
    """All nodes have the same number and model of GPUs.

    Why: every worker of MultiWorkerMirroredStrategy must have the same number of replicas, and the slowest GPU sets the
    pace of all.
    Remedy: leave out the odd nodes, or find out why GPUs are missing there.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/MultiWorkerMirroredStrategy
    """
    yield from compare(fleet, Comparison(section="gpus", what="GPUs", fix=_FIX, label=_label))


def _label(name: str) -> str:
    return "GPU count" if name == "count" else f"GPUs with {name.replace('.', ' ')}:"
