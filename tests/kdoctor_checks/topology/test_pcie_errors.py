from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu, pci, pci_gpu, way
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.pcie_errors import pcie_errors


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"aer_correctable": 1000, "aer_nonfatal": 10}, Status.PASS),
        ({"aer_correctable": 1001}, Status.FAIL),
        ({"aer_nonfatal": 11}, Status.FAIL),
        ({"aer_fatal": 1}, Status.FAIL),
        ({"aer_fatal": None}, Status.UNKNOWN),
        ({"aer_fatal": None, "aer_nonfatal": 50}, Status.FAIL),
    ],
)
@pytest.mark.parametrize("place", ["gpu", "switch"])
def test_many_errors_on_gpu_or_port_warn(place: str, change: dict[str, Any], status: Status) -> None:
    device = pci_gpu(1, **change) if place == "gpu" else pci_gpu(1, path=way(1, **change))
    result = compute_check(pcie_errors, pci(2, pci_gpu(0), device))
    assert (result.status, result.severity) == (status, Severity.WARNING)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else [f"PCI 0000:{'20' if place == 'gpu' else '1d'}:00.0"])


def test_checklist_sets_limits() -> None:
    assert compute_check(pcie_errors, pci(1, pci_gpu(0, aer_fatal=2)), most_fatal=2).status is Status.PASS


def test_unread_path_is_unknown() -> None:
    assert compute_check(pcie_errors, pci(1, pci_gpu(0, path=None))).status is Status.UNKNOWN


def test_errors_above_lost_gpu_only_are_explained_by_it() -> None:
    devices = pci(2, pci_gpu(0, aer_fatal=1), pci_gpu(1, aer_fatal=1))
    found = compute_check(pcie_errors, devices, gpus(2, gpu(0), lost_gpu(1))).findings
    assert [item.finding.explained_by for item in found] == [(), ("gpu.responding",)]


def test_errors_without_a_driver_fail_and_their_absence_does_not_pass() -> None:
    nothing = gpus(0, state="driver-not-loaded")
    assert compute_check(pcie_errors, pci(2), nothing).status is Status.SKIP
    assert compute_check(pcie_errors, pci(1, pci_gpu(0, aer_fatal=1)), nothing).status is Status.FAIL
    assert compute_check(pcie_errors, pci(0, *pci().switches), nothing).status is Status.SKIP


@pytest.mark.parametrize(
    ("recorded", "status"),
    [((), Status.PASS), (("UnsupReq",), Status.PASS), (("MalfTLP", "CmpltTO"), Status.FAIL), (None, Status.UNKNOWN)],
)
def test_recorded_errors_are_judged_without_counters(recorded: tuple[str, ...] | None, status: Status) -> None:
    """lspci shows which errors were recorded, and not how many."""
    counters = dict.fromkeys(("aer_correctable", "aer_nonfatal", "aer_fatal"))
    device = pci_gpu(0, path=(), aer_status=recorded, **counters)
    assert compute_check(pcie_errors, pci(1, device), gpus(1)).status is status
