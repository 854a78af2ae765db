from __future__ import annotations

from typing import Any

import pytest

from helpers.kdoctor_fleet.rdma import device, network
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.pcie_link import pcie_link

GEN4 = "16.0 GT/s PCIe"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, Status.PASS),
        ({"link_width": 8}, Status.FAIL),
        ({"link_width": 8, "slot_width_max": 8}, Status.PASS),
        ({"link_speed": GEN4}, Status.FAIL),
        ({"link_speed": GEN4, "slot_speed_max": GEN4}, Status.PASS),
        ({"link_speed": None}, Status.PASS),
        ({"link_width": None}, Status.SKIP),
    ],
)
def test_link_is_compared_with_card_and_slot(changes: dict[str, Any], status: Status) -> None:
    assert compute_check(pcie_link, network(device(0, **changes))).status is status


def test_machine_without_rdma_is_skipped() -> None:
    assert compute_check(pcie_link, network()).status is Status.SKIP
