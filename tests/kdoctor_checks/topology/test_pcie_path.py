from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import bridge, pci, pci_gpu, way
from kdoctor.facts import PciDevices
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.pcie_path import pcie_path


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"link_width": 8}, Status.FAIL),
        ({"link_speed": "16.0 GT/s PCIe"}, Status.FAIL),
        ({"link_width": 8, "link_width_max": 8}, Status.PASS),  # the maximum of the switch
        ({"link_width_max": None}, Status.UNKNOWN),
        ({"link_speed_max": None}, Status.UNKNOWN),
    ],
)
def test_degraded_link_above_switch_warns(change: dict[str, Any], status: Status) -> None:
    result = compute_check(pcie_path, pci(2, pci_gpu(0), pci_gpu(1, path=way(1, **change))))
    assert (result.status, result.severity) == (status, Severity.WARNING)


def test_shared_link_names_its_gpus_once() -> None:
    shared = way(0, link_width=4)[:2]
    found = pci(2, *(pci_gpu(index, path=(*shared, way(index)[2])) for index in range(2)))
    (finding,) = (item.finding for item in compute_check(pcie_path, found).findings)
    assert finding.subject == "PCI 0000:0c:00.0 - 0000:0d:00.0"
    assert re.match(r"x4 of x16, generation 5 of 5\b.*0000:10:00\.0, 0000:20:00\.0$", finding.observed)


def test_ports_of_one_switch_have_no_link() -> None:
    root, upper, lower = way(0)
    lower = bridge(lower.bus_id, link_width=1, link_speed="2.5 GT/s PCIe")  # the GPU's own link: topology.pcie-width
    assert compute_check(pcie_path, pci(1, pci_gpu(0, path=(root, upper, lower)))).status is Status.PASS


def test_no_switch_is_skipped_and_unread_path_is_unknown() -> None:
    assert compute_check(pcie_path, pci(1, pci_gpu(0, path=()))).status is Status.SKIP
    assert compute_check(pcie_path, pci(2, pci_gpu(0), pci_gpu(1, path=None))).status is Status.UNKNOWN
    assert compute_check(pcie_path, missing={PciDevices: "hung"}).status is Status.UNKNOWN
