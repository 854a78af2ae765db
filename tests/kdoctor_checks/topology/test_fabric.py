from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import geforces, gpu, gpus, lost_gpu
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
        ({"fabric_state": "not-started", "virtualization_mode": "passthrough"}, Status.UNKNOWN),
        ({"virtualization_mode": "passthrough"}, Status.PASS),
    ],
)
def test_incomplete_registration_fails(change: dict[str, Any], status: Status) -> None:
    result = compute_check(fabric, gpus(2, gpu(0), gpu(1, **change)))
    assert (result.status, result.severity) == (status, Severity.ERROR)


def test_gpus_without_fabric_are_skipped() -> None:
    assert compute_check(fabric, geforces(2)).status is Status.SKIP
    off = (gpu(index, fabric_state="not-supported", fabric_status=None) for index in range(2))
    assert compute_check(fabric, gpus(2, *off)).status is Status.SKIP


def test_lost_gpu_is_unknown() -> None:
    assert compute_check(fabric, gpus(2, gpu(0), lost_gpu(1))).status is Status.UNKNOWN


def test_failed_registration_is_explained_by_inactive_links() -> None:
    down = (NvLink(index=0, active=False),)
    failed = gpu(1, fabric_status="NVML_ERROR_UNKNOWN", nvlinks=down)
    waiting = gpu(2, fabric_state="not-started", nvlinks=down)
    found = compute_check(fabric, gpus(3, gpu(0), failed, waiting)).findings
    assert [item.finding.explained_by for item in found] == [("topology.nvlink",), ()]
