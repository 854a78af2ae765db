from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import bridge, geforce, geforces, gpu, gpus, pci, pci_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.pcie_generation import pcie_generation


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"pcie_generation": 4}, Status.FAIL),  # in P0
        ({"pcie_generation": 4, "performance_state": 2, "utilization_gpu_percent": 20}, Status.FAIL),
        ({"pcie_generation": 1, "performance_state": 8, "utilization_gpu_percent": 19}, Status.PASS),
        ({"pcie_generation": 1, "performance_state": None, "utilization_gpu_percent": 0}, Status.UNKNOWN),
        ({"pcie_generation": None, "errors": {"pcie_generation": "Unknown"}}, Status.UNKNOWN),
        ({"pcie_generation_max": None, "errors": {"pcie_generation_max": "Unknown"}}, Status.UNKNOWN),
    ],
)
def test_slow_link_of_active_gpu_warns(change: dict[str, Any], status: Status) -> None:
    result = compute_check(pcie_generation, gpus(2, gpu(0), gpu(1, **change)))
    assert (result.status, result.severity) == (status, Severity.WARNING)


def test_idle_gpu_at_generation_1_is_skipped() -> None:
    result = compute_check(pcie_generation, geforces(2))
    assert result.status is Status.SKIP


def test_busy_cards_are_judged_next_to_idle_ones() -> None:
    """Recorded: five of eight RTX 4090 busy in P2 at generation 4, three idle at generation 1."""
    busy: dict[str, Any] = {"pcie_generation": 4, "performance_state": 2, "utilization_gpu_percent": 98}
    mixed = (geforce(index, **(busy if index < 5 else {})) for index in range(8))
    result = compute_check(pcie_generation, gpus(8, *mixed))
    assert result.status is Status.PASS
    assert [item.subject[:5] for item in result.evidence] == [f"GPU {index}" for index in range(5)]


@pytest.mark.parametrize(
    ("change", "status"), [({}, Status.FAIL), ({"performance_state": 8}, Status.FAIL), ({"name": "L4"}, Status.PASS)]
)
def test_slower_slot_than_those_of_most_gpus_of_the_model_warns(change: dict[str, Any], status: Status) -> None:
    odd = gpu(1, **{"pcie_generation": 3, "pcie_generation_max": 3, **change})
    result = compute_check(pcie_generation, gpus(3, gpu(0), odd, gpu(2)))
    assert result.status is status
    assert [item.finding.subject for item in result.findings] == ([odd.subject] if status is Status.FAIL else [])


@pytest.mark.parametrize(("width", "explained_by"), [(16, ()), (1, ("topology.pcie-width",))])
def test_slow_link_is_explained_by_narrow_one(width: int, explained_by: tuple[str, ...]) -> None:
    (found,) = compute_check(pcie_generation, gpus(2, gpu(0), gpu(1, pcie_generation=1, pcie_width=width))).findings
    assert found.finding.explained_by == explained_by
    assert "0000:20:00.0" in found.finding.remedy.look[0]


@pytest.mark.parametrize(
    ("change", "status"),
    [({}, Status.PASS), ({"link_speed": "2.5 GT/s PCIe"}, Status.UNKNOWN), ({"link_speed": None}, Status.UNKNOWN)],
)
def test_slow_link_without_the_driver_may_be_idle(change: dict[str, Any], status: Status) -> None:
    result = compute_check(pcie_generation, pci(1, pci_gpu(0, **change)))
    assert (result.status, result.findings) == (status, ())


def test_gpu_whose_load_was_not_read_is_not_busy() -> None:
    unread = gpu(0, pcie_generation=1, performance_state=8, utilization_gpu_percent=None)
    assert compute_check(pcie_generation, gpus(1, unread), busy_from_percent=1).status is Status.SKIP


def test_driver_without_a_gpu_is_skipped_for_that_reason() -> None:
    assert compute_check(pcie_generation, gpus(0)).reason == "the driver lists no GPU"


@pytest.mark.parametrize(
    ("gpu_speed", "port_speed", "status"),
    [
        ("32.0 GT/s PCIe", "8.0 GT/s PCIe", Status.PASS),  # the port allows generation 3
        ("8.0 GT/s PCIe", "32.0 GT/s PCIe", Status.PASS),
        ("16.0 GT/s PCIe", "32.0 GT/s PCIe", Status.UNKNOWN),
        ("16.0 GT/s PCIe", None, Status.UNKNOWN),
        (None, None, Status.UNKNOWN),
    ],
)
def test_generation_on_the_bus_is_compared_with_what_both_ends_support(
    gpu_speed: str | None, port_speed: str | None, status: Status
) -> None:
    port = bridge("0000:0e:00.0", link_speed_max=port_speed)
    device = pci_gpu(0, link_speed="8.0 GT/s PCIe", link_speed_max=gpu_speed, path=(port,))
    result = compute_check(pcie_generation, pci(1, device))
    assert result.status is status
    assert [item.observed for item in result.evidence] == (
        ["PCIe x16 of x16, generation 3 of 3"] if status is Status.PASS else []
    )


@pytest.mark.parametrize("unread", ["link_speed", "link_speed_max"])
def test_generation_that_was_not_read_on_the_bus_is_not_stated(unread: str) -> None:
    device = pci_gpu(0, path=(), **{unread: None})
    result = compute_check(pcie_generation, pci(1, device))
    assert [item.subject for item in result.unjudged] == ["GPUs"]
