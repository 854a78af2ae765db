from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Action, Outcome, Severity
from kdoctor_fleet.checks.cluster._compare import Comparison, compare
from kdoctor_fleet.checks.cluster._fixes import by_hand
from kdoctor_fleet.facts import Fleet

_FIX = by_hand(
    "On {nodes}, compare cables, firmware and MTU with another node.", Action.CONFIGURE, "ibstat; ip link show"
)


@check("cluster.network", severity=Severity.WARNING)
def network(fleet: Fleet) -> Iterator[Outcome]:
    """Rate, firmware and MTU of the network devices are the same on all nodes.

    Why: one port at half its rate slows down every collective operation over all nodes, and packets that are larger
    than a neighbour's MTU are dropped without an error.
    Remedy: repair the link or cable, set the same MTU, and update the firmware of the odd nodes.
    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#networking-issues
    """
    yield from compare(fleet, Comparison(section="network", what="network devices", fix=_FIX))
