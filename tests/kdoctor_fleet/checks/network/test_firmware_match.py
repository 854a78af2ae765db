from __future__ import annotations

import pytest

from helpers.kdoctor_fleet.rdma import device, network
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.firmware_match import firmware_match
from kdoctor_fleet.facts import RdmaDevice

OLD = "28.36.1010"


@pytest.mark.parametrize(
    ("devices", "status", "named"),
    [
        ((device(0), device(1)), Status.PASS, []),
        ((device(0), device(1), device(2, firmware=OLD)), Status.FAIL, ["mlx5_2"]),
        ((device(0), device(1, firmware=OLD)), Status.FAIL, ["mlx5_0", "mlx5_1"]),
        ((device(0), device(1, firmware=OLD, board="another card")), Status.SKIP, []),
        ((device(0), device(1, firmware=None)), Status.UNKNOWN, []),
        ((device(0),), Status.SKIP, []),
        ((), Status.SKIP, []),
    ],
)
def test_firmware_of_equal_cards_is_compared(devices: tuple[RdmaDevice, ...], status: Status, named: list[str]) -> None:
    result = compute_check(firmware_match, network(*devices))
    assert result.status is status
    assert [item.finding.subject for item in result.findings] == named
