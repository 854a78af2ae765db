from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Action, Outcome, Severity
from kdoctor_fleet.checks.cluster._compare import Comparison, compare
from kdoctor_fleet.checks.cluster._fixes import by_hand
from kdoctor_fleet.facts import Fleet

_FIX = by_hand(
    "Compare {nodes} with another node, then repair or leave out.",
    Action.INSPECT_HARDWARE,
    "nvidia-smi topo -m",
)


@check("cluster.topology", severity=Severity.WARNING)
def topology(fleet: Fleet) -> Iterator[Outcome]:
    """The GPUs of all nodes are connected in the same way.

    Why: a node with fewer active NVLinks or pairs on slower paths finishes every all-reduce last, and all others wait.
    Remedy: compare the topology of an odd node with that of another one, and repair or leave out the odd one.
    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    yield from compare(
        fleet,
        Comparison(
            section="topology",
            what="links between GPUs",
            fix=_FIX,
            label=lambda name: name.replace("pairs.", "pairs of GPUs at ").replace("nvlinks.", "NVLinks "),
            explained_by=("cluster.gpus",),
        ),
    )
