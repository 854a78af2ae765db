from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import device, network, port
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.port_errors import port_errors

NONE = {"link_downed": None, "symbol_errors": None, "receive_errors": None}


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ({}, Status.PASS),
        ({"link_downed": 10}, Status.PASS),
        ({"link_downed": 11}, Status.FAIL),
        ({"symbol_errors": 1001}, Status.FAIL),
        ({"receive_errors": 1001}, Status.FAIL),
        ({"symbol_errors": None}, Status.PASS),
        (NONE, Status.UNKNOWN),
        ({"state": "DOWN", "link_downed": 99}, Status.SKIP),
    ],
)
def test_counters_are_limited(counts: dict[str, Any], status: Status) -> None:
    assert compute_check(port_errors, network(device(0, port(**counts))), environment()).status is status


def test_checklist_may_set_a_limit() -> None:
    facts = network(device(0, port(link_downed=1))), environment()
    assert compute_check(port_errors, *facts, most_link_downs=0).status is Status.FAIL
