"""Recordings that people posted: each has the exit code and the findings that an expert reads in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.kdoctor_recordings.corpus import failing, judged_recording
from kdoctor.engine.report import Result
from kdoctor.engine.verdict import conclude
from kdoctor.model import Severity, Status

pytestmark = pytest.mark.corpus

FAILS, INCONCLUSIVE = 1, 3
B200 = {f"GPU {index} (0000:{bus}:00.0)" for index, bus in enumerate(("8f", "90", "96", "97", "c4", "c5", "cb", "cc"))}

FOUND: dict[str, tuple[int, dict[str, set[str]]]] = {
    "cap-linux-x86_64__nvidia-h100-mig__590.48.01.txt": (
        FAILS,
        {"gpu.mig-mode": {"GPU 0 (0000:00:09.0)"}, "gpu.free": {"GPU 0 (0000:00:09.0)"}},
    ),
    "cap-linux-x86_64__nvidia-geforce-rtx-2080-super__610.57.04.txt": (FAILS, {"gpu.free": {"GPU 0 (0000:0c:00.0)"}}),
    "k8s-mock-gb200-fabric-degraded.xml": (FAILS, {"topology.fabric": {"GPU 1 (0000:0b:00.0)"}}),
    "topo-b200-gpu2-down-vllm16336.txt": (
        FAILS,
        {"topology.nvlink": {"GPU 2"}, "topology.pairs": {f"GPU 2 - GPU {other}" for other in range(4, 8)}},
    ),
    "nvlink-b200-allinactive-gpud1085.txt": (FAILS, {"topology.nvlink": {"GPU 2"}}),
    "lspci-revff-bumblebee172.txt": (FAILS, {"gpu.responding": {"GPU at 0000:01:00.0"}}),
    "lspci-rtx8000-pi-x1-geerling480.txt": (INCONCLUSIVE, {"topology.pcie-width": {"GPU at 0000:01:00.0"}}),
    "smi-mismatch-tinygrad47.txt": (FAILS, {"driver.library-matches-module": {"NVIDIA driver"}}),
    "smi-failed-wsl9134.txt": (FAILS, {"driver.loaded": {"NVIDIA driver"}}),
    "smi-lost-nospace-syno22.txt": (FAILS, {"gpu.responding": {"GPU 0 (0000:07:00.0)"}}),
    "smi-notfound-ogkm246.txt": (FAILS, {"gpu.responding": {"GPU 0 (0000:01:00.0)"}}),
    "table-wsl-cudaERR-wsl11589.txt": (FAILS, {"driver.loaded": {"NVIDIA driver"}}),
    "table-jetson-orin-jetpacknixos371.txt": (FAILS, {"driver.loaded": {"NVIDIA driver"}}),
    "vgpu-host-4088.txt": (FAILS, {"driver.loaded": {"NVIDIA driver"}}),
    "azdiag-nvidia-smi-inforom.out": (INCONCLUSIVE, {"gpu.readings": {"GPU 7 (0008:00:00.0)"}}),
}
"""File to its exit code, and the errors and warnings with their subjects. No others may fail."""

HEALTHY = [
    "gpud-table-550.90.07.txt",
    "gpud-lspci-gb200.txt",
    "netdata-rtx-2080-win.xml",
    "telegraf-gtx-1660-ti.xml",
    "telegraf-quadro-p400.xml",
    "telegraf-rtx-3080-v12.xml",
    "k8s-hw-b200.xml",
    "topo-dgx1-ms-learn.txt",
]
"""Healthy machines. What was not recorded is unknown, and nothing fails, not even as a note about the hardware."""


def second(name: str, also: Path | None = None) -> dict[str, Result]:
    return judged_recording(f"second/{name}", also=also)


@pytest.mark.parametrize("name", FOUND)
def test_fault_is_found_and_nothing_else(name: str) -> None:
    results = second(name)
    exit_code, findings = FOUND[name]
    assert failing(results) == findings
    assert conclude(results.values()).exit_code == exit_code


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_machine_neither_fails_nor_warns(name: str) -> None:
    results = second(name)
    assert failing(results) == {}
    assert set(failing(results, Severity.INFO)) <= {"gpu.persistence-mode"}
    assert conclude(results.values()).exit_code == INCONCLUSIVE


def test_one_b200_without_links_is_unlike_its_seven_equals(tmp_path: Path) -> None:
    """The query of the recorded node, with a listing of its links in which one GPU has none."""
    head = "GPU {}: NVIDIA B200 (UUID: GPU-00000000-0000-0000-0000-000000000000)\n"
    active = "".join(f"\t Link {link}: 50 GB/s\n" for link in range(18))
    down = "NVML: Unable to retrieve NVLink information as all links are inActive\n"
    listing = tmp_path / "nvlink.txt"
    listing.write_text("".join(head.format(gpu) + (down if gpu == 5 else active) for gpu in range(8)) + "\n")
    results = second("k8s-hw-b200.xml", also=listing)
    ((subject,),) = failing(results).values()
    assert subject in B200
    (finding,) = (item.finding for item in results["topology.nvlink"].findings)
    assert (finding.subject, finding.observed) == (subject, "0 of 18 NVLinks active; 7 other GPUs have 18")
    assert len(results["topology.nvlink"].evidence) == 7


def test_number_of_gpus_is_read_from_the_table() -> None:
    results = second("gpud-table-550.90.07.txt")
    assert {results[check].status for check in ("gpu.count-expected", "gpu.responding")} == {Status.PASS}


def test_power_limit_of_driver_610_is_read() -> None:
    found = second("cap-linux-x86_64__nvidia-geforce-rtx-2080-super__610.57.04.txt")["gpu.power-limit"]
    assert (found.status, "250 W" in found.evidence[0].observed) == (Status.PASS, True)


def test_memory_of_a_desktop_names_its_programs() -> None:
    (evidence,) = second("telegraf-rtx-3080-v12.xml")["gpu.free"].evidence
    assert "Xorg" in evidence.observed
    assert "firefox" in evidence.observed


def test_infos_of_a_gpu_in_mig_mode_are_not_reported() -> None:
    found = second("cap-linux-x86_64__nvidia-h100-mig__590.48.01.txt")["gpu.row-remapping"]
    assert found.status is Status.SKIP
    assert "MIG" in (found.reason or "")


@pytest.mark.parametrize("name", [*FOUND, *HEALTHY])
def test_headlines_are_short(name: str) -> None:
    for result in second(name).values():
        assert all(len(item.finding.headline) <= 60 for item in result.findings), result.id
