"""Recorded machines: the defects that an expert reads in them are found, and healthy machines have no findings."""

import re
from pathlib import Path

import pytest

from helpers.kdoctor_recordings.corpus import failing, judged_recording
from kdoctor.engine.verdict import conclude
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
    "smi-x/a100-sxm4-mig-535.xml": {"gpu.mig-mode": {"GPU at 0000:01:00.0"}},
    "smi-x/gtx-v100s-x8-460.73.xml": {"gpu.free": V100S},
    "smi-x/l4x2-555-one-x1-link.xml": {"topology.pcie-width": {gpu(1, "c1")}},
    "nvlink/a100-inactive-links-azure.txt": {"topology.nvlink": {"GPU 6"}},
    "ecc/retired-pages-x8-bad.txt": {
        "gpu.retired-pages": {gpu(index, "00", f"000{index + 1}") for index in (0, 1, 5, 7)},
        "gpu.retired-pages-pending": {gpu(index, "00", f"000{index + 1}") for index in (1, 3, 5, 7)},
    },
    "smi-table/rtx4090-525-ERR-fan-exclusive.txt": {"gpu.exclusive-mode": {gpu(0, "01")}},
    "kmsg/xid119-gsp-timeout-xe9680.log": {"gpu.kernel-log": {"GPU at 0000:9b:00.0"}},
    "kmsg/xid48-63-94-h100-dmesg-iso.log": {"gpu.kernel-log": {"GPU at 0000:19:00.0"}},
    "kmsg/xid-and-fallen-off-lines.log": {"gpu.kernel-log": {"GPU at 0000:0f:00.0", "GPU at 0000:b3:00.0"}},
    "topo/nccl667-4gpu-pxb-pix-sys.txt": {"topology.pairs": pairs(range(2), range(2, 4))},
    "topo/quda669-8gpu-pix-pxb-sys-nonuma-column.txt": {"topology.pairs": pairs(range(4), range(4, 8))},
    "topo/club3090-178-2x3090-sys-numa-na.txt": {"topology.pairs": {"GPU 0 - GPU 1"}},
}
"""File to the errors and warnings that it must have, with their subjects. No others may fail."""

FAILS, INCONCLUSIVE = 1, 3
POSTED: dict[str, tuple[int, dict[str, set[str]]]] = {
    "second/cap-linux-x86_64__nvidia-h100-mig__590.48.01.txt": (
        FAILS,
        {"gpu.mig-mode": {"GPU 0 (0000:00:09.0)"}, "gpu.free": {"GPU 0 (0000:00:09.0)"}},
    ),
    "second/cap-linux-x86_64__nvidia-geforce-rtx-2080-super__610.57.04.txt": (
        FAILS,
        {"gpu.free": {"GPU 0 (0000:0c:00.0)"}},
    ),
    "second/k8s-mock-gb200-fabric-degraded.xml": (FAILS, {"topology.fabric": {"GPU 1 (0000:0b:00.0)"}}),
    "second/topo-b200-gpu2-down-vllm16336.txt": (
        FAILS,
        {"topology.nvlink": {"GPU 2"}, "topology.pairs": {f"GPU 2 - GPU {other}" for other in range(4, 8)}},
    ),
    "second/nvlink-b200-allinactive-gpud1085.txt": (FAILS, {"topology.nvlink": {"GPU 2"}}),
    "second/lspci-revff-bumblebee172.txt": (FAILS, {"gpu.responding": {"GPU at 0000:01:00.0"}}),
    "second/lspci-rtx8000-pi-x1-geerling480.txt": (INCONCLUSIVE, {"topology.pcie-width": {"GPU at 0000:01:00.0"}}),
    "second/smi-mismatch-tinygrad47.txt": (FAILS, {"driver.library-matches-module": {"NVIDIA driver"}}),
    "second/smi-failed-wsl9134.txt": (FAILS, {"driver.loaded": {"NVIDIA driver"}}),
    "second/smi-lost-nospace-syno22.txt": (FAILS, {"gpu.responding": {"GPU at 0000:07:00.0"}}),
    "second/smi-notfound-ogkm246.txt": (FAILS, {"gpu.responding": {"GPU at 0000:01:00.0"}}),
    "second/table-wsl-cudaERR-wsl11589.txt": (FAILS, {"driver.loaded": {"NVIDIA driver"}}),
    "second/table-jetson-orin-jetpacknixos371.txt": (FAILS, {"driver.loaded": {"NVIDIA driver"}}),
    "second/vgpu-host-4088.txt": (FAILS, {"driver.loaded": {"NVIDIA driver"}}),
    "second/azdiag-nvidia-smi-inforom.out": (INCONCLUSIVE, {"gpu.readings": {"GPU 7 (0008:00:00.0)"}}),
}
"""The same of recordings that people posted, with their exit codes."""

SILENT = [
    "smi-x/rtx3090-525-idle-gen1.xml",
    "smi-x/rtx4090-535-host-gen3.xml",
    "nvlink/a100x8-status-gpud.txt",
    "pci/h100x8-xe9680-lspci-vvv.txt",
    "topo/ml-engineering-8xh100-nv18.txt",
    "topo/club3090-1229-2x5090-p2p-rw-gns.txt",
    "second/gpud-table-550.90.07.txt",
    "second/gpud-lspci-gb200.txt",
    "second/netdata-rtx-2080-win.xml",
    "second/telegraf-gtx-1660-ti.xml",
    "second/telegraf-quadro-p400.xml",
    "second/telegraf-rtx-3080-v12.xml",
    "second/k8s-hw-b200.xml",
    "second/topo-dgx1-ms-learn.txt",
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


@pytest.mark.parametrize("name", POSTED)
def test_fault_is_found_and_nothing_else(name: str) -> None:
    results = judged_recording(name)
    exit_code, findings = POSTED[name]
    assert failing(results) == findings
    assert conclude(results.values()).exit_code == exit_code


@pytest.mark.parametrize("name", SILENT)
def test_healthy_machine_neither_fails_nor_warns(name: str) -> None:
    results = judged_recording(name)
    assert failing(results) == {}
    assert conclude(results.values()).exit_code == INCONCLUSIVE
    if name.startswith("second/"):
        assert set(failing(results, Severity.INFO)) <= {"gpu.persistence-mode"}


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


@pytest.mark.parametrize("name", [*NAMED, *POSTED, *SILENT, *BUSY])
def test_findings_have_short_headlines(name: str) -> None:
    headlines = [item.finding.headline for result in judged_recording(name).values() for item in result.findings]
    assert max(map(len, headlines), default=0) <= 60


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


B200 = {f"GPU {index} (0000:{bus}:00.0)" for index, bus in enumerate(("8f", "90", "96", "97", "c4", "c5", "cb", "cc"))}


def test_one_b200_without_links_is_unlike_its_seven_equals(tmp_path: Path) -> None:
    """The query of the recorded node, with a listing of its links in which one GPU has none."""
    head = "GPU {}: NVIDIA B200 (UUID: GPU-00000000-0000-0000-0000-000000000000)\n"
    active = "".join(f"\t Link {link}: 50 GB/s\n" for link in range(18))
    down = "NVML: Unable to retrieve NVLink information as all links are inActive\n"
    listing = tmp_path / "nvlink.txt"
    listing.write_text("".join(head.format(gpu) + (down if gpu == 5 else active) for gpu in range(8)) + "\n")
    results = judged_recording("second/k8s-hw-b200.xml", also=listing)
    ((subject,),) = failing(results).values()
    assert subject in B200
    (finding,) = (item.finding for item in results["topology.nvlink"].findings)
    assert (finding.subject, finding.observed) == (subject, "0 of 18 NVLinks active; 7 other GPUs have 18")
    assert len(results["topology.nvlink"].evidence) == 7


def test_number_of_gpus_is_read_from_the_table() -> None:
    results = judged_recording("second/gpud-table-550.90.07.txt")
    assert {results[check].status for check in ("gpu.count-expected", "gpu.responding")} == {Status.PASS}


def test_power_limit_of_driver_610_is_read() -> None:
    found = judged_recording("second/cap-linux-x86_64__nvidia-geforce-rtx-2080-super__610.57.04.txt")["gpu.power-limit"]
    assert (found.status, "250 W" in found.evidence[0].observed) == (Status.PASS, True)


def test_memory_of_a_desktop_names_its_programs() -> None:
    (evidence,) = judged_recording("second/telegraf-rtx-3080-v12.xml")["gpu.free"].evidence
    assert "Xorg" in evidence.observed
    assert "firefox" in evidence.observed


def test_infos_of_a_gpu_in_mig_mode_are_not_reported() -> None:
    found = judged_recording("second/cap-linux-x86_64__nvidia-h100-mig__590.48.01.txt")["gpu.row-remapping"]
    assert found.status is Status.SKIP
    assert "MIG" in (found.reason or "")
