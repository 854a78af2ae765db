from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import geforces, gpu, gpus
from kdoctor.facts import NvLink
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.fabric import fabric


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"fabric_state": "not-started", "fabric_status": None}, Status.FAIL),
        ({"fabric_state": "in-progress", "fabric_status": None}, Status.FAIL),
        ({"fabric_status": "NVML_ERROR_UNKNOWN"}, Status.FAIL),
        ({"fabric_status": None}, Status.UNKNOWN),
        ({"fabric_state": None, "errors": {"fabric_state": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
        ({"fabric_state": "not-started", "virtualization_mode": "passthrough"}, Status.FAIL),  # its peer is registered
        ({"virtualization_mode": "passthrough"}, Status.PASS),
    ],
)
def test_incomplete_registration_fails(change: dict[str, Any], status: Status) -> None:
    result = compute_check(fabric, gpus(2, gpu(0), gpu(1, **change)))
    assert (result.status, result.severity) == (status, Severity.ERROR)


def test_virtual_machine_without_registered_gpu_is_unknown() -> None:
    change = {"fabric_state": "not-started", "virtualization_mode": "passthrough"}
    result = compute_check(fabric, gpus(2, gpu(0, **change), gpu(1, **change)))
    assert result.status is Status.UNKNOWN


def test_gpus_without_fabric_are_skipped() -> None:
    assert compute_check(fabric, geforces(2)).status is Status.SKIP
    off = (gpu(index, fabric_state="not-supported", fabric_status=None) for index in range(2))
    assert compute_check(fabric, gpus(2, *off)).status is Status.SKIP


def test_failed_registration_is_explained_by_inactive_links() -> None:
    down = (NvLink(index=0, active=False),)
    failed = gpu(1, fabric_status="NVML_ERROR_UNKNOWN", nvlinks=down)
    waiting = gpu(2, fabric_state="not-started", nvlinks=down)
    found = compute_check(fabric, gpus(3, gpu(0), failed, waiting)).findings
    assert [item.finding.explained_by for item in found] == [("topology.nvlink",), ()]


@pytest.mark.parametrize(
    ("problems", "headline"),
    [
        (("route unhealthy: True",), "fabric health: route unhealthy"),
        (("bandwidth: Degraded",), "fabric health: bandwidth: Degraded"),
        (("incorrect configuration: Insufficient NVLinks", "bandwidth: Degraded"), "fabric health: 2 problems"),
    ],
)
def test_bad_health_of_a_registered_gpu_fails(problems: tuple[str, ...], headline: str) -> None:
    (found,) = compute_check(fabric, gpus(2, gpu(0), gpu(1, fabric_problems=problems))).findings
    assert (found.finding.subject, found.finding.headline) == ("GPU 1 (0000:20:00.0)", headline)
    assert all(problem in found.finding.observed for problem in problems)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("NVML_ERROR_NOT_SUPPORTED", Status.PASS),
        ("NVML_ERROR_FUNCTION_NOT_FOUND", Status.PASS),
        ("NVML_ERROR_UNKNOWN", Status.UNKNOWN),
    ],
)
def test_health_that_no_gpu_reports_is_not_needed(error: str, status: Status) -> None:
    devices = (gpu(index, fabric_problems=None, errors={"fabric_problems": error}) for index in range(2))
    assert compute_check(fabric, gpus(2, *devices)).status is status


def test_gpu_outside_the_fabric_of_its_equals_fails() -> None:
    odd = gpu(1, fabric_state="not-supported", fabric_status=None)
    (found,) = compute_check(fabric, gpus(3, gpu(0), odd, gpu(2))).findings
    assert found.finding.subject == "GPU 1 (0000:20:00.0)"


def test_driver_that_is_too_old_for_the_fabric_is_skipped() -> None:
    old: dict[str, Any] = {"fabric_state": None, "errors": {"fabric_state": "NVML_ERROR_FUNCTION_NOT_FOUND"}}
    result = compute_check(fabric, gpus(2, *(gpu(index, **old) for index in range(2))))
    assert result.status is Status.SKIP
    assert "is too old to report fabric state" in (result.reason or "")
