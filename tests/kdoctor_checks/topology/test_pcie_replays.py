from __future__ import annotations

import pytest

from helpers.facts import gpu, gpus
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.pcie_replays import pcie_replays


@pytest.mark.parametrize(
    ("count", "status"),
    [
        (0, Status.PASS),
        (120, Status.PASS),  # recorded on healthy 8 x H100 machines
        (1000, Status.PASS),
        (1001, Status.FAIL),
        (None, Status.UNKNOWN),
    ],
)
def test_many_replays_are_a_note(count: int | None, status: Status) -> None:
    result = compute_check(pcie_replays, gpus(2, gpu(0), gpu(1, pcie_replay_counter=count)))
    assert (result.status, result.severity) == (status, Severity.INFO)


def test_checklist_sets_limit() -> None:
    assert compute_check(pcie_replays, gpus(1), most=42).status is Status.FAIL
