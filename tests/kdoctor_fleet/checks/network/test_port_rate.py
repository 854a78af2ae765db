from __future__ import annotations

import pytest

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import device, network, port
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.port_rate import port_rate
from kdoctor_fleet.facts import RdmaDevice

SLOW = {"rate_gbits": 100.0, "speed": "EDR"}


@pytest.mark.parametrize(
    ("second", "status"),
    [
        (device(1), Status.PASS),
        (device(1, port(**SLOW)), Status.FAIL),
        (device(1, port(**SLOW), board="another card"), Status.PASS),
        (device(1, port(**SLOW), board=None), Status.PASS),
        (device(1, port(link_layer="Ethernet", **SLOW)), Status.PASS),
        (device(1, port(state="DOWN", **SLOW)), Status.PASS),
        (device(1, port(lanes=1, rate_gbits=100.0), board="another card"), Status.FAIL),
        (device(1, port(lanes=2), board="splitter"), Status.PASS),
        (device(1, port(rate_gbits=None)), Status.UNKNOWN),
    ],
)
def test_rate_is_compared_with_equal_cards(second: RdmaDevice, status: Status) -> None:
    result = compute_check(port_rate, network(device(0), second), environment())
    assert result.status is status
    assert {item.finding.subject for item in result.findings} <= {"mlx5_1 port 1"}


def test_machine_without_active_port_is_skipped() -> None:
    assert compute_check(port_rate, network(), environment()).status is Status.SKIP
    assert compute_check(port_rate, network(device(0, port(state="DOWN"))), environment()).status is Status.SKIP
