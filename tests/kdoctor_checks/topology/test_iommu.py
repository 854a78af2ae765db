from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import gpu, gpus, kernel_settings, pair, pci, pci_gpu
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpus, Kernel, PciDevices
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.iommu import iommu

OVER_PCIE = (pair(level="PIX", nvlinks=0),)
IN_USE = kernel_settings(iommu_groups=40, iommu_parameters=("intel_iommu=on",))


def judged(change: dict[str, Any], *facts: FactGroup) -> Result:
    devices = pci(2, *(pci_gpu(index, **{"iommu_group": index, **change}) for index in range(2)))
    return compute_check(iommu, devices, IN_USE, gpus(2, pairs=OVER_PCIE), *facts)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("identity", Status.PASS),
        ("DMA", Status.FAIL),
        ("DMA-FQ", Status.FAIL),
        ("blocked", Status.FAIL),
        ("unmanaged", Status.PASS),
        (None, Status.UNKNOWN),
    ],
)
def test_iommu_translation_warns(kind: str | None, status: Status) -> None:
    result = judged({"iommu_type": kind})
    assert (result.status, result.severity) == (status, Severity.WARNING)


def test_finding_has_kernel_parameters_and_rollback() -> None:
    finding = judged({"iommu_type": "DMA"}).findings[0].finding
    assert re.search(r"group 0, type DMA.*intel_iommu=on", finding.observed)
    assert "iommu=pt" in finding.remedy.commands[0]
    assert finding.rollback.kind == "commands"


def test_no_iommu_passes() -> None:
    result = judged({"iommu_group": None}, kernel_settings(iommu_groups=0))
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)", "GPU 1 (0000:20:00.0)"]
    assert judged({"iommu_group": None}, kernel_settings(iommu_groups=None)).status is Status.UNKNOWN


def test_nvlink_pair_passes_and_unread_pair_is_unknown() -> None:
    assert judged({"iommu_type": "DMA"}, gpus(2)).status is Status.PASS
    unread = gpus(2, pairs=(pair(nvlinks=0, p2p_read=None),))
    assert judged({"iommu_type": "DMA"}, unread).status is Status.UNKNOWN


def test_virtual_machine_and_confidential_computing_are_skipped() -> None:
    virtual = gpus(2, *(gpu(index, virtualization_mode="passthrough") for index in range(2)))
    assert judged({"iommu_type": "DMA"}, virtual).status is Status.SKIP
    assert judged({"iommu_type": "DMA"}, gpus(2, conf_compute=True)).status is Status.SKIP
    assert compute_check(iommu, pci(1), IN_USE, gpus(1)).status is Status.SKIP


@pytest.mark.parametrize("group", [PciDevices, Kernel, Gpus])
def test_missing_evidence_is_unknown(group: type[FactGroup]) -> None:
    result = compute_check(iommu, pci(2), IN_USE, gpus(2), missing={group: "hung"})
    assert result.status is Status.UNKNOWN
