"""The kernel's view of the GPUs against lspci, ``nvidia-smi topo -m`` and the kernel log as dmesg prints it."""

import re
from pathlib import Path

import pytest

from helpers import real_gpu
from helpers.real_gpu import Record, imported, tool
from kdoctor.facts import Facts, Gpus, KernelLog, PciDevices

pytestmark = pytest.mark.gpu

FIELDS = ("device_id", "device_class", "driver", "link_speed_max", "link_width_max", "link_width", "numa_node")
"""Fields that do not change while the GPU is idle; the link's current speed does."""


@pytest.fixture
def pci(facts: Facts) -> PciDevices:
    found = real_gpu.group(facts, PciDevices)
    if not found.devices:
        pytest.skip("the kernel lists no NVIDIA device on the PCI bus")
    return found


def test_pci_devices_are_those_of_lspci(pci: PciDevices, tmp_path: Path, record: Record) -> None:
    theirs = imported(tmp_path, PciDevices, tool("lspci", "-D", "-nn", "-vvv"))
    assert [device.bus_id for device in pci.devices] == [device.bus_id for device in theirs.devices]
    for ours, other in zip(pci.devices, theirs.devices, strict=True):
        for field in FIELDS:
            one, two = getattr(ours, field), getattr(other, field)
            record.row("sysfs and lspci", device=ours.device_id, field=field, sysfs=one, lspci=two)
            if one is not None and two is not None:
                assert one == two, field


def test_every_gpu_of_the_driver_is_on_the_bus(gpus: Gpus, pci: PciDevices, record: Record) -> None:
    for gpu in gpus.devices:
        device = pci.find(gpu.bus_id)
        assert device, f"{gpu.subject} is not on the bus"
        assert device.is_gpu
        width = (gpu.pcie_width_max, device.link_width_max)
        record.row("NVML and sysfs", GPU=gpu.index, driver=device.driver, width_NVML=width[0], width_sysfs=width[1])
        assert device.driver in (None, "nvidia")
        if gpu.pcie_width is not None and device.link_width is not None:
            assert gpu.pcie_width == device.link_width


@pytest.mark.parametrize("field", ["cpu_affinity", "numa_affinity", "gpu_numa_id"])
def test_affinities_are_those_of_nvidia_smi(field: str, gpus: Gpus, tmp_path: Path, record: Record) -> None:
    theirs = imported(tmp_path, Gpus, tool("nvidia-smi", "topo", "-m"))
    compared = 0
    for ours, other in zip(gpus.devices, theirs.devices, strict=True):
        one, two = getattr(ours, field), getattr(other, field)
        record.row("NVML and topo -m", GPU=ours.index, field=field, NVML=one, topo=two)
        if one is not None and two is not None:
            assert one == two
            compared += 1
    if not compared:
        pytest.skip(f"NVML or topo -m reports no {field}")


def test_pairs_are_those_of_nvidia_smi(gpus: Gpus, tmp_path: Path) -> None:
    if len(gpus.devices) < 2:
        pytest.skip("one GPU has no pairs")
    theirs = imported(tmp_path, Gpus, tool("nvidia-smi", "topo", "-m"))
    shown = {(pair.first, pair.second): pair for pair in theirs.pairs}
    for pair in gpus.pairs:
        other = shown[pair.first, pair.second]
        assert pair.nvlinks == other.nvlinks
        if other.level is not None:
            assert pair.level == other.level


@pytest.mark.parametrize("option", [(), ("-T",), ("--time-format", "iso")], ids=["plain", "T", "iso"])
def test_dmesg_has_the_events_of_the_kernel_log(
    option: tuple[str, ...], facts: Facts, tmp_path: Path, record: Record
) -> None:
    ours = real_gpu.group(facts, KernelLog)
    text = tool("dmesg", *option)
    if not re.search(r"NVRM|nvidia|Linux version", text):
        pytest.skip("dmesg prints no line of the boot or of NVIDIA's driver")
    theirs = imported(tmp_path, KernelLog, text)
    record.row("Kernel log", source=f"dmesg {' '.join(option)}", lines=theirs.lines, events=len(theirs.events))
    record.row("Kernel log", source=ours.source, lines=ours.lines, events=len(ours.events))
    assert [(event.kind, event.code, event.bus_id) for event in theirs.events] == [
        (event.kind, event.code, event.bus_id) for event in ours.events
    ]


def test_xids_are_counted_as_in_the_text(facts: Facts) -> None:
    log = real_gpu.group(facts, KernelLog)
    # kdoctor keeps a limited number of events of one kind, device and code.
    codes = set(re.findall(r"NVRM: (?:GPU at \S+ )?Xid \([^)]*\): (\d+)", tool("dmesg")))
    assert {str(event.code) for event in log.events if event.kind == "xid"} == codes
