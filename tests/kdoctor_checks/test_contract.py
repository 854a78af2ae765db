"""What holds for every check of GPUs, whatever it asks; ``evidence`` has it for each group of facts and field."""

import pytest

from helpers.evidence.checks import CHECKS, LOG_CHECKS, NOT_ON_H100, judged
from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.check import Check
from kdoctor.facts import Gpus
from kdoctor.model import Assumptions, GpuAssumption, Status
from kdoctor.testing import compute_check

OF_THE_BUS = {
    "gpu.visible-to-driver",
    "topology.acs",
    "topology.acs-settings",
    "topology.pcie-errors",
    "topology.pcie-path",
}
"""Checks that read the bus, where a lost GPU still is."""
REPORTING = {"gpu.count-expected", "gpu.responding"}
"""Checks of lost GPUs."""
OF_GPUS = [check for check in CHECKS if Gpus in check.facts.values() and check.family in ("gpu", "topology")]
NEEDING = [check for check in CHECKS if check.needs_gpus]


@pytest.mark.parametrize("check", OF_GPUS, ids=lambda check: check.id)
def test_lost_gpu_is_unknown(check: Check) -> None:
    result = judged(check, gpus(8, *(lost_gpu(3) if index == 3 else gpu(index) for index in range(8))))
    if check.id in OF_THE_BUS | LOG_CHECKS:
        assert result.status is Status.PASS
    elif check.id in REPORTING:
        assert result.status is Status.FAIL
    elif check.id in NOT_ON_H100:
        assert result.status is Status.SKIP
    else:
        assert result.status is Status.UNKNOWN
        assert {item.explained_by for item in result.unjudged} == {("gpu.responding",)}
        assert not any("GPU 3" in item.subject for item in result.evidence)


@pytest.mark.parametrize("check", OF_GPUS, ids=lambda check: check.id)
def test_machine_without_gpus_does_not_pass(check: Check) -> None:
    result = judged(check, gpus(0, devices=(), count=0))
    assert result.status is not Status.PASS
    assert not [item for item in result.evidence if item.subject.startswith("GPU ")]


@pytest.mark.parametrize("check", NEEDING, ids=lambda check: check.id)
def test_check_of_gpus_is_skipped_if_none_is_expected(check: Check) -> None:
    result = compute_check(check, assumptions=Assumptions(gpus=GpuAssumption(count=0)))
    assert (result.status, result.reason) == (Status.SKIP, "the checklist expects no GPUs")


def test_every_check_of_gpus_and_their_links_needs_gpus() -> None:
    assert {check.id for check in CHECKS if check.family in ("gpu", "topology")} <= {check.id for check in NEEDING}
