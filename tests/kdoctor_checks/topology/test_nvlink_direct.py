from __future__ import annotations

import re
from dataclasses import replace

from helpers.facts import gpus, lost_gpu, nvlinks, pci, v100, v100_workstation
from kdoctor.engine.report import Result
from kdoctor.facts import Gpu, NvLink, PciDevices
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.nvlink_direct import nvlink_direct

SIX = nvlinks(6, version=2, speed_gbs=25.781, remote_kind="gpu")


def judged(*devices: Gpu, least: int = 0) -> Result:
    return compute_check(nvlink_direct, gpus(len(devices), *devices), PciDevices(devices=()), least=least)


def test_all_active_passes() -> None:
    result = compute_check(nvlink_direct, *v100_workstation())
    assert (result.status, result.severity) == (Status.PASS, Severity.WARNING)
    assert len(result.evidence) == 4


def test_partly_active_bridge_warns() -> None:
    half = (*SIX[:4], NvLink(index=4, active=False), NvLink(index=5, active=False))
    result = judged(v100(0), v100(1, nvlinks=half))
    assert re.match(r"4 of 6 .*4, 5\b", result.findings[0].finding.observed)
    assert len(result.evidence) == 1


def test_inactive_links_next_to_lost_gpu_are_unknown() -> None:
    half = (*SIX[:4], NvLink(index=4, active=False), NvLink(index=5, active=False))
    result = judged(v100(0, nvlinks=half), v100(1), lost_gpu(2))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.unjudged] == ["GPU 2", f"NVLinks of {v100(0).subject}"]
    assert {item.explained_by for item in result.unjudged} == {("gpu.responding",)}
    assert [item.subject for item in result.evidence] == [v100(1).subject]


def test_cards_without_bridge_are_ignored_next_to_bridged_ones() -> None:
    none = tuple(NvLink(index=index, active=False) for index in range(6))
    alone = replace(v100(2), name="NVIDIA A100 80GB PCIe", nvlinks=none)
    assert judged(alone).status is Status.SKIP
    assert judged(v100(0), v100(1), alone).status is Status.PASS


def test_checklist_sets_number_of_links() -> None:
    assert judged(v100(0), least=6).status is Status.PASS
    assert judged(v100(0), least=7).status is Status.FAIL


def test_unread_links_are_unknown() -> None:
    broken = (*SIX[:5], NvLink(index=5, errors={"active": "Unknown"}))
    assert judged(v100(0), v100(1, nvlinks=broken)).status is Status.UNKNOWN
    assert judged(v100(0), v100(1, nvlinks=None, errors={"nvlinks": "Unknown"})).status is Status.UNKNOWN


def test_links_to_switches_are_skipped() -> None:
    assert compute_check(nvlink_direct, gpus(2), pci(2)).status is Status.SKIP
