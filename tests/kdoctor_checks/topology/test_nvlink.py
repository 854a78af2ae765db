from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import NOT_SUPPORTED, geforces, gpu, gpus, nvlinks, pci, v100_workstation
from kdoctor.engine.report import Result
from kdoctor.facts import Gpu, NvLink, PciDevices
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.nvlink import nvlink


def judged(*devices: Gpu, **parameters: Any) -> Result:
    return compute_check(nvlink, gpus(len(devices), *devices), pci(8), **parameters)


def test_all_links_of_all_gpus_active_passes() -> None:
    result = judged(gpu(0), gpu(1))
    assert (result.status, result.severity) == (Status.PASS, Severity.ERROR)
    assert re.match(r"18 .*26\.562 GB/s", result.evidence[0].observed)


def test_one_link_down_fails_and_names_gpu_and_link() -> None:
    result = judged(gpu(0), gpu(1, nvlinks=nvlinks(down=(3, 7))), gpu(2))
    (finding,) = (item.finding for item in result.findings)
    assert finding.subject == "GPU 1 (0000:20:00.0)"
    assert re.match(r"16 of 18 .*3, 7\b", finding.observed)
    assert len(result.evidence) == 2


def test_all_links_of_module_down_fails() -> None:
    """Recorded: an A100 SXM4 with all links inactive."""
    down = nvlinks(12, down=range(12))
    alone = gpus(1, gpu(0, name="NVIDIA A100-SXM4-80GB", nvlinks=down))
    result = compute_check(nvlink, alone, missing={PciDevices: "a dump"})
    assert result.findings[0].finding.observed.startswith("all 12 ")


def test_card_without_bridge_is_skipped() -> None:
    """An A100 PCIe lists twelve links, and without a bridge none is active."""
    card = gpu(0, name="NVIDIA A100 80GB PCIe", nvlinks=nvlinks(12, down=range(12)))
    result = compute_check(nvlink, gpus(1, card), PciDevices(devices=()))
    assert result.status is Status.SKIP


def test_fewer_links_than_same_model_fails() -> None:
    assert re.match(r"17 .*18 expected", judged(gpu(0), gpu(1, nvlinks=nvlinks(17))).findings[0].finding.observed)


def test_checklist_sets_number_of_links() -> None:
    assert judged(gpu(0), least=18).status is Status.PASS
    assert judged(gpu(0), least=19).status is Status.FAIL


def test_link_slower_than_others_fails() -> None:
    *others, last = nvlinks()
    result = judged(gpu(0), gpu(1, nvlinks=(*others, replace(last, speed_gbs=20.0))))
    assert result.findings[0].finding.observed.endswith("link 17 20 of 26.562 GB/s")


def test_unread_link_is_unknown() -> None:
    *others, last = nvlinks()
    broken = NvLink(index=last.index, errors={"active": "NVML_ERROR_UNKNOWN"})
    result = judged(gpu(0), gpu(1, nvlinks=(*others, broken)))
    assert result.status is Status.UNKNOWN
    assert re.match(r"GPU 1 .* 1 NVLink .*\(NVML_ERROR_UNKNOWN\)", result.reason or "")


def test_unread_links_are_unknown_and_cards_without_nvlink_ignored() -> None:
    assert judged(gpu(0), gpu(1, nvlinks=None, errors={"nvlinks": "Unknown"})).status is Status.UNKNOWN
    assert judged(gpu(0), gpu(1, nvlinks=None, errors={"nvlinks": NOT_SUPPORTED})).status is Status.UNKNOWN
    assert compute_check(nvlink, geforces(2), pci(2)).status is Status.SKIP


def test_direct_links_are_skipped() -> None:
    assert compute_check(nvlink, *v100_workstation()).status is Status.SKIP


@pytest.mark.parametrize(
    ("change", "explained_by"),
    [
        ({}, ("topology.nvswitch-errors",)),
        ({"fabric_state": "not-started"}, ("topology.nvswitch-errors", "topology.fabric")),
        ({"fabric_state": None}, ("topology.nvswitch-errors", "topology.fabric-manager")),
    ],
)
def test_inactive_links_are_explained_by_switch_or_fabric(
    change: dict[str, Any], explained_by: tuple[str, ...]
) -> None:
    one, two = (gpu(index, nvlinks=nvlinks(down=(index,)), **change) for index in range(2))
    found = [item.finding for item in judged(one, two).findings]
    assert {finding.explained_by for finding in found} == {explained_by}
    assert len({(finding.headline, finding.remedy) for finding in found}) == 1


@pytest.mark.parametrize("state", ["completed", "in-progress", "not-supported", None])
@pytest.mark.parametrize(
    ("mode", "status"), [("passthrough", Status.SKIP), ("vgpu", Status.SKIP), ("none", Status.FAIL)]
)
def test_only_gpu_of_a_virtual_machine_needs_no_links(mode: str, status: Status, state: str | None) -> None:
    down = tuple(replace(link, active=False) for link in nvlinks())
    alone = gpu(0, name="NVIDIA H200", nvlinks=down, virtualization_mode=mode, fabric_state=state)
    assert compute_check(nvlink, gpus(1, alone), missing={PciDevices: "a dump"}).status is status


def test_slow_link_is_not_explained() -> None:
    slow = tuple(replace(link, speed_gbs=10.0) if link.index == 3 else link for link in nvlinks())
    (found,) = judged(gpu(0), gpu(1, nvlinks=slow)).findings
    assert found.finding.explained_by == ()


def test_only_gpu_of_a_virtual_machine_with_active_links_is_judged() -> None:
    partly = gpu(0, virtualization_mode="passthrough", nvlinks=nvlinks(down=(3,)))
    result = compute_check(nvlink, gpus(1, partly), PciDevices(devices=()))
    assert [item.finding.observed for item in result.findings] == ["17 of 18 NVLinks active (inactive: 3)"]


OLD: dict[str, Any] = {"name": "Tesla V100-SXM2-16GB", "fabric_state": None}


def test_gpu_whose_equals_are_on_switches_must_have_links() -> None:
    machine = gpus(2, gpu(0, **OLD), gpu(1, nvlinks=(), **OLD))
    result = compute_check(nvlink, machine, PciDevices(devices=()))
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]
    assert [item.subject for item in result.unjudged] == ["GPU 1 (0000:20:00.0)"]


def test_card_next_to_gpus_on_switches_needs_no_links() -> None:
    card = gpu(1, name="NVIDIA A40", nvlinks=(), fabric_state=None)
    result = compute_check(nvlink, gpus(2, gpu(0), card), pci(2))
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]
    assert result.unjudged == ()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"virtualization_mode": "passthrough", "nvlinks": nvlinks(down=range(18))}, "the only GPU, whose NVLinks"),
        ({"name": "NVIDIA A40", "fabric_state": None, "nvlinks": ()}, "no GPU is known to be connected to NVSwitches"),
    ],
)
def test_machine_without_nvswitches_has_its_reason(changes: dict[str, Any], reason: str) -> None:
    result = compute_check(nvlink, gpus(1, gpu(0, **changes)), PciDevices(devices=()))
    assert result.status is Status.SKIP
    assert (result.reason or "").startswith(reason)
