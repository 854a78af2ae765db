"""The checks that judge facts, and machines on which they pass."""

import functools

from helpers.checks import ALL
from helpers.evidence.machines import MACHINE, STATED
from kdoctor.check import Check
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup
from kdoctor.model import Assumptions, Status
from kdoctor.testing import compute_check

CHECKS = [check for check in ALL.values() if check.scenario is None]

LOG_CHECKS = {
    "driver.memory-regions",
    "gpu.kernel-log",
    "gpu.application-xids",
    "gpu.logged-remapping",
    "topology.iommu-faults",
    "topology.logged-pcie-errors",
    "topology.nvswitch-errors",
    "topology.nvswitch-warnings",
}
"""Checks that are skipped if the kernel log was not read. driver.kernel-log is then unknown."""

NOT_ON_H100 = {
    "gpu.fan",
    "gpu.retired-pages",
    "gpu.retired-pages-pending",
    "topology.fabric-manager",
    "topology.nvlink-direct",
    "topology.p2p-geforce",
    "topology.p2p-trusted",
}
"""Checks that ask nothing of a healthy H100."""


def judged(check: Check, *facts: FactGroup, assumptions: Assumptions = STATED) -> Result:
    """The result on the H100 node of two hosts, with these groups instead of those of the node."""
    return compute_check(check, *MACHINE, *facts, assumptions=assumptions)


@functools.cache
def statuses() -> dict[str, Status]:
    """The status of each check there."""
    return {check.id: judged(check).status for check in CHECKS}


def healthy_status(check: Check) -> Status:
    """The status of one check there."""
    return statuses()[check.id]
