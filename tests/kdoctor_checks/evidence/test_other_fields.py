"""No check passes if a field of another group that it needs was not read."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.evidence.checks import CHECKS, judged
from helpers.facts import gpus, h100_node, pci
from kdoctor.facts import FactGroup, Gpus, Host, Kernel, KernelDriver, PciDevices
from kdoctor.model import Status

GROUP_FIELDS: dict[tuple[type[FactGroup], str], set[str]] = {
    (Host, "cpu_affinity"): {"host.cpus", "topology.numa"},
    (Host, "cpu_limit"): {"host.cpus"},
    (Host, "memory_total_bytes"): {"host.memory", "host.swap"},
    (Host, "memory_available_bytes"): {"host.memory"},
    (Host, "shm_total_bytes"): {"host.shared-memory"},
    (Host, "shm_free_bytes"): {"host.shared-memory"},
    (Host, "swap_total_bytes"): {"host.swap"},
    (Host, "swap_used_bytes"): {"host.swap"},
    (Host, "cpu_governors"): {"host.cpu-governor"},
    (Host, "transparent_hugepages"): {"host.huge-pages"},
    (Kernel, "iommu_groups"): {"topology.iommu"},
    (KernelDriver, "version"): {"driver.library-matches-module"},
    (KernelDriver, "nodes"): {"driver.device-nodes", "driver.unified-memory-node"},
    (Gpus, "driver_version"): {"driver.library-matches-module"},
    (Gpus, "count"): {"gpu.count-expected", "gpu.responding"},
    (Gpus, "conf_compute"): {"driver.confidential-computing"},
    (Gpus, "node_errors"): {"driver.device-nodes"},
}
"""Field of a group to the checks that need it to pass."""


@pytest.mark.parametrize(("group", "field"), GROUP_FIELDS, ids=lambda item: item if isinstance(item, str) else None)
def test_unread_field_of_a_group_does_not_pass(group: type[FactGroup], field: str) -> None:
    healthy = next(item for item in h100_node(8) if isinstance(item, group))
    for check in CHECKS:
        if check.id in GROUP_FIELDS[group, field]:
            assert judged(check, replace(healthy, **{field: None})).status is Status.UNKNOWN, check.id


@cases(
    ("aer_correctable", {"topology.pcie-errors"}),
    ("aer_nonfatal", {"topology.pcie-errors"}),
    ("aer_fatal", {"topology.pcie-errors"}),
    ("path", {"topology.acs", "topology.acs-settings", "topology.pcie-errors", "topology.pcie-path"}),
)
def test_unread_field_of_a_pci_function_does_not_pass(field: str, check_ids: set[str]) -> None:
    one, *others = pci(8).devices
    unread: dict[str, Any] = {field: None}
    for check in CHECKS:
        if check.id in check_ids:
            found = judged(check, PciDevices(devices=(replace(one, **unread), *others)))
            assert found.status in {Status.UNKNOWN, Status.SKIP}, check.id


@cases(
    ("acs_control", {"topology.acs", "topology.acs-settings"}),
    ("link_width_max", {"topology.pcie-path"}),
    ("link_speed_max", {"topology.pcie-path"}),
    ("aer_fatal", {"topology.pcie-errors"}),
)
def test_unread_field_of_a_bridge_does_not_pass(field: str, check_ids: set[str]) -> None:
    one, *others = pci(8).devices
    root, *below = one.path or ()
    unread: dict[str, Any] = {field: None}
    broken = replace(one, path=(replace(root, **unread), *below))
    for check in CHECKS:
        if check.id in check_ids:
            found = judged(check, PciDevices(devices=(broken, *others)))
            assert found.status in {Status.UNKNOWN, Status.SKIP}, check.id


@pytest.mark.parametrize("field", ["p2p_read", "p2p_write"])
def test_unread_field_of_a_pair_does_not_pass(field: str) -> None:
    one, *others = gpus(8).pairs
    unread: dict[str, Any] = {field: None, "errors": {field: "NVML_ERROR_UNKNOWN"}}
    broken = gpus(8, pairs=(replace(one, **unread), *others))
    (check,) = (check for check in CHECKS if check.id == "topology.p2p")
    assert judged(check, broken).status is Status.UNKNOWN
