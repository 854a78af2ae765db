from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import device, network
from kdoctor.facts import Host, Kernel, KernelDriver
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.gpudirect import gpudirect


@pytest.mark.parametrize(
    ("modules", "flavour", "release", "status"),
    [
        (("nvidia", "nvidia_peermem"), "proprietary", "5.4.0-150-generic", Status.PASS),
        (("nvidia",), "open", "6.8.0-60-generic", Status.PASS),
        (("nvidia",), "open", "5.12.1", Status.PASS),
        (("nvidia",), "open", "5.4.0-150-generic", Status.FAIL),
        (("nvidia",), "proprietary", "6.8.0-60-generic", Status.FAIL),
        (("nvidia",), None, "6.8.0-60-generic", Status.UNKNOWN),
        (None, "open", "6.8.0-60-generic", Status.UNKNOWN),
        (("nvidia",), "open", None, Status.UNKNOWN),
    ],
)
def test_way_into_gpu_memory(modules: Any, flavour: Any, release: str | None, status: Status) -> None:
    facts = Kernel(modules=modules), KernelDriver(loaded=True, version="570.158.01", flavour=flavour)
    host = Host(os="Linux", kernel=release)
    result = compute_check(gpudirect, network(device(0)), *facts, host, environment())
    assert result.status is status
    if result.findings:
        assert "sudo modprobe nvidia-peermem" in result.findings[0].finding.remedy.commands


@pytest.mark.parametrize("found", [network(), network(device(0, driver="efa"))], ids=["no RDMA", "EFA"])
def test_machine_without_infiniband_or_roce_is_skipped(found: Any) -> None:
    facts = Kernel(modules=()), KernelDriver(loaded=True), Host(os="Linux"), environment()
    assert compute_check(gpudirect, found, *facts).status is Status.SKIP
