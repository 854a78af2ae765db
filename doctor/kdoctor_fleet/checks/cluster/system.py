from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Action, Outcome, Severity
from kdoctor_fleet.checks.cluster._compare import Comparison, compare
from kdoctor_fleet.checks.cluster._fixes import by_hand
from kdoctor_fleet.facts import Fleet

_FIX = by_hand(
    "Update {nodes} to the system or image of the other nodes, and reboot.",
    Action.REBOOT,
    "uname -r",
)


@check("cluster.system", severity=Severity.WARNING)
def system(fleet: Fleet) -> Iterator[Outcome]:
    """All nodes run the same kernel, distribution, C library and container image.

    Why: nodes drift apart when some are updated and others are not. The driver's kernel module is built for one kernel,
    and a job whose nodes run two images runs two environments.
    Remedy: update or reimage the odd nodes.
    Source: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    yield from compare(fleet, Comparison(section="host", what="operating system", fix=_FIX))
