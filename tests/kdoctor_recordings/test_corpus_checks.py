"""Recorded machines: the defects that an expert reads in them are found, and healthy machines have no findings."""

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
    "smi-table/rtx4090-525-ERR-fan-exclusive.txt": {
        "gpu.exclusive-mode": {gpu(0, "01")},
        "gpu.readings": {gpu(0, "01")},  # its fan
    },
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


def test_files_of_one_machine_are_judged_together() -> None:
    """The PCI tree is of another machine with the same layout, so the bus ids are equal."""
    found = judged_recording("smi-q/h100x8-535.161.08-hwslowdown-all.txt", "pci/h100x8-xe9680-lspci-vvv.txt")
    assert failing(found) == {"gpu.clocks": H100}
    assert found["topology.acs"].status is Status.PASS
    assert found["gpu.visible-to-driver"].status in {Status.PASS, Status.UNKNOWN}
