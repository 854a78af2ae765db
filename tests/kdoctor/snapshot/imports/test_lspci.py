from __future__ import annotations

import time
from pathlib import Path

from helpers.dumps import LSPCI, imported, imported_pci
from kdoctor.facts import PciBridge, PciDevice

ACS_ON = 0x01 | 0x04 | 0x08 | 0x10


def test_the_way_to_the_root_port(tmp_path: Path) -> None:
    gpu, audio = imported_pci(tmp_path, LSPCI).devices
    root_port = PciBridge(
        bus_id="0000:00:01.0",
        device_id="0002",
        link_speed="16.0 GT/s PCIe",
        link_speed_max="16.0 GT/s PCIe",
        link_width=8,
        link_width_max=16,
        acs_control=ACS_ON,
    )
    assert gpu == PciDevice(
        bus_id="0000:3b:00.0",
        device_id="20b0",
        device_class="0302",
        driver="nvidia",
        link_speed="2.5 GT/s PCIe",
        link_speed_max="16.0 GT/s PCIe",
        link_width=8,
        link_width_max=16,
        acs_control=0,
        numa_node=1,
        iommu_group=27,
        path=(root_port, PciBridge(bus_id="0000:3a:00.0", device_id="0003")),
    )
    assert (audio.device_class, audio.driver, audio.is_gpu) == ("0403", None, False)


def test_with_numbers_and_domains(tmp_path: Path) -> None:
    text = LSPCI.replace(
        "\n3b:00.0 3D controller: NVIDIA Corporation Device 20b0",
        "\n0008:3b:00.0 3D controller [0302]: Example [10de:2941]",
    )
    text = text.replace("Device 134f", "Device [10de:16c1]")
    gpu = imported_pci(tmp_path, text).find("0008:3b:00.0")
    assert gpu is not None
    assert (gpu.device_class, gpu.device_id, gpu.subsystem, gpu.path) == ("0302", "2941", "10de:16c1", None)


def test_without_the_right_to_read_it_acs_is_unknown(tmp_path: Path) -> None:
    gpu = imported_pci(tmp_path, LSPCI).gpus[0]
    assert gpu.path is not None
    assert gpu.path[1].acs_control is None


def test_acs_without_its_register_is_unknown(tmp_path: Path) -> None:
    text = "".join(line for line in LSPCI.splitlines(keepends=True) if "ACSCtl" not in line)
    gpu = imported_pci(tmp_path, text).gpus[0]
    assert gpu.path is not None
    assert gpu.path[0].acs_control is None


def test_a_listing_of_chosen_devices_lacks_the_way(tmp_path: Path) -> None:
    gpu = imported_pci(tmp_path, LSPCI[LSPCI.index("3b:00.0") :]).gpus[0]
    assert gpu.path is None


def test_a_gpu_of_the_root_complex_has_no_bridges(tmp_path: Path) -> None:
    bridge = "00:00.0 Host bridge: Example Corp. Device 1\n\n"
    text = bridge + "00:05.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n\n"
    assert imported_pci(tmp_path, text).gpus[0].path == ()


def test_a_listing_that_is_cut_knows_no_acs_of_its_last_device(tmp_path: Path) -> None:
    cut = LSPCI[: LSPCI.index("\tKernel driver in use: nvidia")]
    found = imported(tmp_path, cut)
    gpu = imported_pci(tmp_path, cut).gpus[0]
    assert gpu.acs_control is None
    assert found.notes == ("file-0: the configuration space of its last device is cut",)


def test_no_nvidia_device_at_all(tmp_path: Path) -> None:
    assert imported_pci(tmp_path, LSPCI[: LSPCI.index("3b:00.0")]).devices == ()


def test_a_megabyte_takes_no_time(tmp_path: Path) -> None:
    text = LSPCI + "".join(LSPCI.replace("00:", f"{bus:02x}:") for bus in range(0x40, 0xFF)) * 4
    assert len(text) > 1_000_000
    started = time.process_time()
    imported(tmp_path, text)
    assert time.process_time() - started < 2  # measured: 0.1; the margin is for busy machines
