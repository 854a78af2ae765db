"""Recorded machines: the defects listed in INDEX.md are found, and healthy machines have no findings."""

from __future__ import annotations

import re

import pytest

from helpers.kdoctor_recordings.corpus import failing, judged_recording
from kdoctor.model import Severity, Status

pytestmark = pytest.mark.corpus


def gpu(index: int, bus: str, domain: str = "0000") -> str:
    return f"GPU {index} ({domain}:{bus}:00.0)"


H100 = {gpu(index, bus) for index, bus in enumerate(("19", "3b", "4c", "5d", "9b", "bb", "cb", "db"))}
V100S = {f"GPU {index} (0000:00:{0x0D + index:02x}.0)" for index in range(8)}


def pairs(first: range, second: range) -> set[str]:
    return {f"GPU {one} - GPU {two}" for one in first for two in second}


NAMED: dict[str, dict[str, set[str]]] = {
    "smi-q/h100x8-535.161.08-hwslowdown-all.txt": {"gpu.clocks": H100},
    "smi-q/a10-535.129.03-remap-pending.txt": {"gpu.row-remapping-pending": {gpu(0, "07")}},
    "smi-x/a100-sxm4-mig-535.xml": {"gpu.mig-mode": {gpu(0, "01")}},
    "smi-x/gtx-v100s-x8-460.73.xml": {"gpu.free": V100S},
    "smi-x/l4x2-555-one-x1-link.xml": {"topology.pcie-width": {gpu(1, "c1")}},
    "nvlink/a100-inactive-links-azure.txt": {"topology.nvlink": {"GPU 6"}},
    "ecc/retired-pages-x8-bad.txt": {
        "gpu.retired-pages": {gpu(index, "00", f"000{index + 1}") for index in (0, 1, 5, 7)},
        "gpu.retired-pages-pending": {gpu(index, "00", f"000{index + 1}") for index in (1, 3, 5, 7)},
    },
    "smi-table/rtx4090-525-ERR-fan-exclusive.txt": {
        "gpu.exclusive-mode": {gpu(0, "01")},
        "gpu.free": {gpu(0, "01")},
    },
    "kmsg/xid119-gsp-timeout-xe9680.log": {"gpu.kernel-log": {"GPU at 0000:9b:00.0"}},
    "kmsg/xid48-63-94-h100-dmesg-iso.log": {"gpu.kernel-log": {"GPU at 0000:19:00.0"}},
    "kmsg/xid-and-fallen-off-lines.log": {"gpu.kernel-log": {"GPU at 0000:0f:00.0", "GPU at 0000:b3:00.0"}},
    "topo/nccl667-4gpu-pxb-pix-sys.txt": {"topology.pairs": pairs(range(2), range(2, 4))},
    "topo/quda669-8gpu-pix-pxb-sys-nonuma-column.txt": {"topology.pairs": pairs(range(4), range(4, 8))},
    "topo/club3090-178-2x3090-sys-numa-na.txt": {"topology.pairs": {"GPU 0 - GPU 1"}},
}
"""File to the errors and warnings that it must have, with their subjects. No others may fail."""

SILENT = [
    "smi-x/rtx3090-525-idle-gen1.xml",
    "smi-x/rtx4090-535-host-gen3.xml",
    "nvlink/a100x8-status-gpud.txt",
    "pci/h100x8-xe9680-lspci-vvv.txt",
    "topo/ml-engineering-8xh100-nv18.txt",
    "topo/club3090-1229-2x5090-p2p-rw-gns.txt",
]
"""Healthy machines, some with misleading values: idle links, downgraded ports without a GPU, ACS above NVSwitches."""

BUSY = {
    "capture/h100-80gb-590.48.txt": {"gpu.free"},
    "capture/l40s-595.80.txt": {"gpu.free"},
    "smi-q/rtx4090x8-535.154.05-mixed-load.txt": {"gpu.free"},
    "smi-q/rtx4090x8-535.154.05-addressing-unknown-error.txt": {"gpu.free"},
}
"""Healthy machines that were recorded while processes used their memory."""


@pytest.mark.parametrize("name", NAMED)
def test_recorded_defects_are_found_and_nothing_else(name: str) -> None:
    assert failing(judged_recording(name)) == NAMED[name]


@pytest.mark.parametrize("name", SILENT)
def test_healthy_machine_has_no_errors_or_warnings(name: str) -> None:
    assert failing(judged_recording(name)) == {}


@pytest.mark.parametrize("name", BUSY)
def test_busy_machine_has_no_other_findings(name: str) -> None:
    assert set(failing(judged_recording(name))) == BUSY[name]


def test_power_brake_is_found_with_the_clocks() -> None:
    found = judged_recording("smi-q/h100x8-535.161.08-hwslowdown-all.txt")
    (observed,) = {item.finding.observed for item in found["gpu.clocks"].findings}
    assert {"86", "1980"} <= set(re.findall(r"\d+", observed))
    for healthy in ("topology.pcie-width", "topology.pcie-generation", "topology.pcie-replays"):
        assert found[healthy].status is Status.PASS, healthy


def test_truncated_file_is_unknown() -> None:
    found = judged_recording("smi-x/a100-sxm4-mig-535.xml")
    assert re.findall(r"\d+", found["gpu.responding"].reason or "") == ["4", "1"]
    assert found["gpu.count-expected"].status is Status.UNKNOWN


def test_unknown_error_is_unknown() -> None:
    found = judged_recording("smi-q/rtx4090x8-535.154.05-addressing-unknown-error.txt")
    assert "Unknown Error" in (found["gpu.readings"].reason or "")
    assert found["gpu.readings"].status is Status.UNKNOWN


def test_fan_with_an_error_is_unknown() -> None:
    found = judged_recording("smi-table/rtx4090-525-ERR-fan-exclusive.txt")["gpu.fan"]
    assert found.status is Status.UNKNOWN
    assert [(item.subject, "ERR!" in item.reason) for item in found.unjudged] == [(gpu(0, "01"), True)]


def test_slot_that_limits_its_gpu_fails_as_info() -> None:
    found = judged_recording("smi-x/rtx4090-535-host-gen3.xml")
    assert failing(found, Severity.INFO)["topology.pcie-slot"] == {gpu(0, "84")}


def test_acs_above_nvswitches_is_ignored() -> None:
    found = judged_recording("pci/h100x8-xe9680-lspci-vvv.txt")
    assert found["topology.acs"].status is Status.PASS
    assert not any("0000:82:" in item.subject for item in found["topology.acs"].evidence)


def test_files_of_one_machine_are_judged_together() -> None:
    """The PCI tree is of another machine with the same layout, so the bus ids are equal."""
    found = judged_recording("smi-q/h100x8-535.161.08-hwslowdown-all.txt", "pci/h100x8-xe9680-lspci-vvv.txt")
    assert failing(found) == {"gpu.clocks": H100}
    assert found["topology.acs"].status is Status.PASS
    assert found["gpu.visible-to-driver"].status in {Status.PASS, Status.UNKNOWN}


@pytest.mark.parametrize("name", [*NAMED, *BUSY])
def test_findings_have_short_headlines(name: str) -> None:
    headlines = [item.finding.headline for result in judged_recording(name).values() for item in result.findings]
    assert max(map(len, headlines)) <= 60


def test_gpus_with_one_finding_share_headline_and_fix() -> None:
    for name, check_id in (
        ("smi-q/h100x8-535.161.08-hwslowdown-all.txt", "gpu.clocks"),
        ("smi-x/gtx-v100s-x8-460.73.xml", "gpu.persistence-mode"),
        ("smi-x/gtx-v100s-x8-460.73.xml", "gpu.free"),
        ("ecc/retired-pages-x8-bad.txt", "gpu.retired-pages"),
    ):
        findings = [item.finding for item in judged_recording(name)[check_id].findings]
        assert len(findings) > 1
        assert len({(finding.headline, finding.remedy) for finding in findings}) == 1
