from __future__ import annotations

import pytest

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import device, network, port, two_hosts
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.port_state import port_state
from kdoctor_fleet.facts import JobHosts

DOWN = {"state": "DOWN", "physical_state": "Polling"}


def judged(*facts: FactGroup) -> Result:
    return compute_check(port_state, *facts)


def test_active_ports_pass() -> None:
    result = judged(network(device(0), device(1)), environment(), JobHosts())
    assert result.status is Status.PASS
    assert {evidence.brief for evidence in result.evidence} == {"400 Gbit/s (4X NDR) InfiniBand"}


def test_port_that_is_down_beside_active_equals_fails() -> None:
    result = judged(network(device(0), device(1, port(**DOWN)), device(2)), environment(), JobHosts())
    assert [item.finding.subject for item in result.findings] == ["mlx5_1 port 1"]
    assert "2 equal ports" in result.findings[0].finding.observed


def test_link_without_subnet_manager_fails() -> None:
    result = judged(network(device(0, port(state="INIT"))), environment(), JobHosts())
    assert result.status is Status.FAIL
    assert "opensm" in result.findings[0].finding.remedy.summary


def test_unused_port_of_a_machine_passes() -> None:
    second = port(number=2, **DOWN)
    result = judged(network(device(0, port(), second), device(1, board="other", ports=(port(**DOWN),))), environment())
    assert result.findings == ()


@pytest.mark.parametrize(
    ("value", "status"), [("mlx5_0", Status.FAIL), ("^mlx5_0", Status.PASS), ("mlx5_1", Status.PASS)]
)
def test_port_that_nccl_shall_use_must_be_active(value: str, status: Status) -> None:
    both = network(device(0, port(**DOWN), board="a"), device(1, board="b"))
    assert judged(both, environment(NCCL_IB_HCA=value), JobHosts()).status is status


def test_job_over_machines_needs_an_active_port() -> None:
    idle = network(device(0, port(**DOWN)))
    assert judged(idle, environment(), JobHosts()).status is Status.PASS
    assert judged(idle, environment(), two_hosts()).status is Status.FAIL


def test_state_that_was_not_read_is_unknown() -> None:
    assert judged(network(device(0, port(state=None))), environment(), JobHosts()).status is Status.UNKNOWN


def test_machine_without_rdma_is_skipped() -> None:
    assert judged(network(), environment(), JobHosts()).status is Status.SKIP
