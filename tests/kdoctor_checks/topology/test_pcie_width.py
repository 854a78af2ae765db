from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import bridge, gpu, gpus, pci, pci_gpu
from kdoctor.facts import Gpus
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.pcie_width import pcie_width


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"pcie_width": 8}, Status.FAIL),
        ({"pcie_width": 1, "performance_state": 0}, Status.FAIL),  # recorded: an L4 at x1 of x16 in P0
        ({"pcie_width": 8, "performance_state": 7}, Status.FAIL),
        ({"pcie_width": 8, "performance_state": 8}, Status.UNKNOWN),
        ({"pcie_width": 8, "performance_state": None}, Status.UNKNOWN),
        ({"performance_state": None}, Status.PASS),  # full width is full width in any state
        ({"pcie_generation": 1, "performance_state": 8}, Status.PASS),  # recorded: idle 4090 and 3090 at generation 1
        ({"pcie_width": 8, "pcie_width_max": 8}, Status.PASS),
        ({"pcie_width": 0, "pcie_width_max": 0}, Status.UNKNOWN),
        ({"pcie_width": None}, Status.UNKNOWN),
        ({"pcie_width_max": None}, Status.UNKNOWN),
    ],
)
def test_narrow_link_fails_unless_gpu_is_idle(change: dict[str, Any], status: Status) -> None:
    result = compute_check(pcie_width, gpus(2, gpu(0), gpu(1, **change)))
    assert (result.status, result.severity) == (status, Severity.WARNING)
    assert "x16 of x16, generation 5 of 5 in P0" in result.evidence[0].observed


@pytest.mark.parametrize(
    ("others", "status"),
    [
        ({}, Status.UNKNOWN),  # in use: how wide idle ones are is not known
        ({"performance_state": 8}, Status.FAIL),
        ({"performance_state": 8, "pcie_width": 8}, Status.UNKNOWN),
        ({"performance_state": 8, "name": "NVIDIA L4"}, Status.UNKNOWN),
    ],
)
def test_narrow_idle_gpu_is_compared_with_idle_ones_of_its_model(others: dict[str, Any], status: Status) -> None:
    narrow = gpu(1, pcie_width=8, performance_state=8)
    result = compute_check(pcie_width, gpus(4, gpu(0, **others), narrow, gpu(2, **others), gpu(3, **others)))
    assert result.status is status
    assert [item.finding.subject for item in result.findings] == ([narrow.subject] if status is Status.FAIL else [])


@pytest.mark.parametrize(
    ("widths", "status"),
    [((8, 16), Status.UNKNOWN), ((8, 16, 16), Status.FAIL), ((8, 8, 16, 16), Status.UNKNOWN)],
)
def test_more_than_half_of_the_idle_gpus_must_have_full_width(widths: tuple[int, ...], status: Status) -> None:
    idle = (gpu(index, pcie_width=width, performance_state=8) for index, width in enumerate(widths))
    assert compute_check(pcie_width, gpus(len(widths), *idle)).status is status


def test_gpu_whose_state_was_not_read_does_not_count_as_idle() -> None:
    unknown = [gpu(index, performance_state=None) for index in range(2)]
    narrow = gpu(2, pcie_width=8, performance_state=1)
    assert compute_check(pcie_width, gpus(3, *unknown, narrow), idle_from=1).status is Status.UNKNOWN


def test_headline_of_a_narrow_link_names_the_width_that_it_lacks() -> None:
    for change, headline in (
        ({"pcie_width": 8}, "PCIe x8 of x16"),
        ({"pcie_width": 8, "pcie_width_max": 8}, "PCIe x8, most have x16"),
    ):
        (found,) = compute_check(pcie_width, gpus(3, gpu(0), gpu(1), gpu(2, **change))).findings
        assert found.finding.headline == headline


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.FAIL),
        ({"performance_state": 8}, Status.FAIL),
        ({"name": "NVIDIA L4"}, Status.PASS),
        ({"pcie_width": 16, "pcie_width_max": 16}, Status.PASS),
    ],
)
def test_narrower_slot_than_those_of_most_gpus_of_the_model_fails(change: dict[str, Any], status: Status) -> None:
    odd = gpu(1, **{"pcie_width": 8, "pcie_width_max": 8, **change})
    result = compute_check(pcie_width, gpus(3, gpu(0), odd, gpu(2)))
    assert result.status is status
    assert [item.finding.subject for item in result.findings] == ([odd.subject] if status is Status.FAIL else [])


def test_finding_names_link() -> None:
    result = compute_check(pcie_width, gpus(1, gpu(0, pcie_width=4)))
    finding = result.findings[0].finding
    assert finding.expected == "x16"
    assert "x4 of x16, generation 5 of 5 in P0" in finding.observed
    assert finding.remedy.look[0] == "sudo lspci -vv -s 0000:10:00.0 | grep -E 'LnkCap:|LnkSta:'"


def test_checklist_can_accept_half_the_lanes() -> None:
    half = gpus(1, gpu(0, pcie_width=8))
    assert compute_check(pcie_width, half, least_share=0.5).status is Status.PASS
    assert compute_check(pcie_width, gpus(1, gpu(0, pcie_width=4)), least_share=0.5).status is Status.FAIL


def test_no_gpu_does_not_pass() -> None:
    assert compute_check(pcie_width, gpus(0)).status is Status.SKIP


@pytest.mark.parametrize(
    ("change", "status", "headline"),
    [
        ({}, Status.PASS, None),
        ({"link_width": 1}, Status.FAIL, "PCIe x1 of x16"),
        ({"link_width": 8, "path": None}, Status.FAIL, "PCIe x8 of x16"),
        ({"link_width": 8, "path": (bridge("0000:0e:00.0", link_width_max=8),)}, Status.PASS, None),
        ({"link_speed": "2.5 GT/s PCIe"}, Status.PASS, None),
        ({"link_width": None}, Status.UNKNOWN, None),
    ],
)
def test_width_is_judged_by_the_bus_alone(change: dict[str, Any], status: Status, headline: str | None) -> None:
    result = compute_check(pcie_width, pci(1, pci_gpu(0, **change)))
    assert result.status is status
    assert [item.finding.headline for item in result.findings] == ([headline] if headline else [])


def test_hanging_driver_is_unknown_although_the_bus_is_read() -> None:
    result = compute_check(pcie_width, pci(2), missing={Gpus: "the probe hung"})
    assert (result.status, len(result.evidence)) == (Status.UNKNOWN, 2)
