from __future__ import annotations

import pytest

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import device, network, port
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.nccl_devices import nccl_devices

MACHINE = network(device(0), device(1, port(), port(number=2)), device(10))


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("mlx5", Status.PASS),
        ("mlx5_1", Status.PASS),
        ("=mlx5_1:2,mlx5_0:1", Status.PASS),
        ("^mlx5_10", Status.PASS),
        ("^=mlx5_7", Status.PASS),
        ("mlx5_0,mlx5_7", Status.FAIL),
        ("=mlx5", Status.FAIL),
        ("=mlx5_0:2", Status.FAIL),
        ("ibp", Status.FAIL),
        ("^mlx5", Status.FAIL),
        ("", Status.SKIP),
    ],
)
def test_names_must_exist(value: str, status: Status) -> None:
    result = compute_check(nccl_devices, environment(NCCL_IB_HCA=value), MACHINE)
    assert result.status is status
    if result.findings:
        assert result.findings[0].finding.remedy.commands == ("unset NCCL_IB_HCA",)


def test_machine_without_rdma_fails_only_if_devices_are_named() -> None:
    assert compute_check(nccl_devices, environment(), network()).status is Status.SKIP
    assert compute_check(nccl_devices, environment(NCCL_IB_HCA="mlx5_0"), network()).status is Status.FAIL


def test_missing_facts_are_unknown_only_if_devices_are_named() -> None:
    assert compute_check(nccl_devices, environment()).status is Status.SKIP
    assert compute_check(nccl_devices, environment(NCCL_IB_HCA="mlx5_0")).status is Status.UNKNOWN
