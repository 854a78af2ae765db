from __future__ import annotations

import time
from pathlib import Path

import pytest

from helpers.dumps import LSPCI, imported, imported_pci
from kdoctor.errors import UsageError
from kdoctor.facts import PciBridge, PciDevice, PciDevices

ACS_ON = 0x01 | 0x04 | 0x08 | 0x10


def test_path_to_root_port(tmp_path: Path) -> None:
    gpu, audio = imported_pci(tmp_path, LSPCI).devices
    root_port = PciBridge(
        bus_id="0000:00:01.0",
        device_id="0002",
        link_speed="16.0 GT/s PCIe",
        link_speed_max="16.0 GT/s PCIe",
        link_width=8,
        link_width_max=16,
        acs_control=ACS_ON,
        responds=True,
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
        responds=True,
        numa_node=1,
        iommu_group=27,
        path=(root_port, PciBridge(bus_id="0000:3a:00.0", device_id="0003", responds=True)),
    )
    assert (audio.device_class, audio.driver, audio.is_gpu) == ("0403", None, False)


def test_lspci_with_numbers_and_domains(tmp_path: Path) -> None:
    text = LSPCI.replace(
        "\n3b:00.0 3D controller: NVIDIA Corporation Device 20b0",
        "\n0008:3b:00.0 3D controller [0302]: Example [10de:2941]",
    )
    text = text.replace("Device 134f", "Device [10de:16c1]")
    gpu = imported_pci(tmp_path, text).find("0008:3b:00.0")
    assert gpu is not None
    assert (gpu.device_class, gpu.device_id, gpu.subsystem, gpu.path) == ("0302", "2941", "10de:16c1", None)


def test_acs_is_unknown_without_root(tmp_path: Path) -> None:
    gpu = imported_pci(tmp_path, LSPCI).gpus[0]
    assert gpu.path is not None
    assert gpu.path[1].acs_control is None


def test_acs_without_its_register_is_unknown(tmp_path: Path) -> None:
    text = "".join(line for line in LSPCI.splitlines(keepends=True) if "ACSCtl" not in line)
    gpu = imported_pci(tmp_path, text).gpus[0]
    assert gpu.path is not None
    assert gpu.path[0].acs_control is None


def test_listing_of_selected_devices_has_no_paths(tmp_path: Path) -> None:
    gpu = imported_pci(tmp_path, LSPCI[LSPCI.index("3b:00.0") :]).gpus[0]
    assert gpu.path is None


def test_gpu_of_root_complex_has_no_bridges(tmp_path: Path) -> None:
    bridge = "00:00.0 Host bridge: Example Corp. Device 1\n\n"
    text = bridge + "00:05.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n\n"
    assert imported_pci(tmp_path, text).gpus[0].path == ()


def test_truncated_listing_has_no_acs_for_last_device(tmp_path: Path) -> None:
    cut = LSPCI[: LSPCI.index("\tKernel driver in use: nvidia")]
    found = imported(tmp_path, cut)
    gpu = imported_pci(tmp_path, cut).gpus[0]
    assert gpu.acs_control is None
    assert [note.partition(":")[0] for note in found.notes] == ["file-0"]


def test_no_nvidia_device_at_all(tmp_path: Path) -> None:
    assert imported_pci(tmp_path, LSPCI[: LSPCI.index("3b:00.0")]).devices == ()


def test_megabyte_of_text_is_fast(tmp_path: Path) -> None:
    text = LSPCI + "".join(LSPCI.replace("00:", f"{bus:02x}:") for bus in range(0x40, 0xFF)) * 4
    assert len(text) > 1_000_000
    started = time.process_time()
    imported(tmp_path, text)
    assert time.process_time() - started < 2  # measured: 0.1; the margin is for busy machines


def test_listing_without_details_has_no_path_and_is_complete(tmp_path: Path) -> None:
    bridge = "0009:00:00.0 PCI bridge: NVIDIA Corporation Device 22b1"
    found = imported(tmp_path, f"{bridge}\n0009:01:00.0 3D controller: NVIDIA Corporation Device 2941 (rev a1)\n")
    assert found.notes == ()
    devices = found.facts[PciDevices]
    assert isinstance(devices, PciDevices)
    assert [(gpu.bus_id, gpu.path) for gpu in devices.gpus] == [("0009:01:00.0", None)]


@pytest.mark.parametrize(
    "text",
    [
        "3b:00.0 3D controller: NVIDIA Corporation Device 20b0 (rev ff)\n",
        "3b:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:20b0] (rev ff)\n\t!!! Unknown header type 7f\n",
        "3b:00.0 0302: 10de:20b0 (rev ff)\n",
        '3b:00.0 "3D controller" "NVIDIA Corporation" "Device 20b0" -rff -pff "" ""\n',
        '3b:00.0 "0302" "10de" "20b0" -rff "10de" "134f"\n',
        "Slot:\t3b:00.0\nClass:\t3D controller\nVendor:\tNVIDIA Corporation\nDevice:\tDevice 20b0\nRev:\tff\n",
        "3b:00.0 3D controller: NVIDIA Corporation Device 20b0 (rev a1)\n00: ff ff ff ff ff ff ff ff ff ff\n",
    ],
    ids=("plain", "-vnn", "-n", "-mm", "-nmm", "-vmm", "-xxx"),
)
def test_gpu_whose_configuration_space_is_all_ones(text: str, tmp_path: Path) -> None:
    (gpu,) = imported_pci(tmp_path, text).gpus
    assert (gpu.bus_id, gpu.device_id, gpu.responds) == ("0000:3b:00.0", "20b0", False)


def test_machine_readable_listings_have_drivers_and_nodes(tmp_path: Path) -> None:
    block = "Slot:\t{}:00.0\nClass:\t{}\nVendor:\t{}\nDevice:\tDevice 20b0\nRev:\ta1\nDriver:\tnvidia\nNUMANode:\t1\n\n"
    text = block.format("3b", "3D controller", "NVIDIA Corporation") + block.format("5e", "Bridge", "Example Corp.")
    (gpu,) = imported_pci(tmp_path, text).devices
    assert (gpu.bus_id, gpu.driver, gpu.numa_node, gpu.responds) == ("0000:3b:00.0", "nvidia", 1, None)


@pytest.mark.parametrize(
    ("link", "width", "speed"),
    [
        ("Speed 2.5GT/s (downgraded), Width x8 (downgraded)\n\t\t\tTrErr- Train-", 8, "2.5 GT/s PCIe"),
        ("Speed 16GT/s, Width x16\n\t\t\tTrErr- Train- SlotClk+", 16, "16.0 GT/s PCIe"),
        ("Speed 8GT/s, Width x4, TrErr- Train- SlotClk+", 4, "8.0 GT/s PCIe"),
        ("Speed 5GT/s (degraded), Width x1 (degraded)", 1, "5.0 GT/s PCIe"),
        ("Speed unknown, Width x2", 2, None),
        ("Speed unknown, Width x0, TrErr-", None, None),
    ],
)
def test_links_of_several_versions_of_lspci(link: str, width: int | None, speed: str | None, tmp_path: Path) -> None:
    text = LSPCI.replace("Speed 2.5GT/s (downgraded), Width x8 (downgraded)", link)
    gpu = imported_pci(tmp_path, text).gpus[0]
    assert (gpu.link_width, gpu.link_speed) == (width, speed)


@pytest.mark.parametrize(
    ("register", "found"),
    [
        ("UESta:\tDLP- SDES- TLP- FCP- CmpltTO- RxOF- MalfTLP- ECRC- UnsupReq- ACSViol-", ()),
        ("UESta:\tDLP- SDES- TLP- FCP- CmpltTO+\n\t\t\tRxOF- MalfTLP+ UnsupReq+", ("CmpltTO", "MalfTLP", "UnsupReq")),
        ("DevSta:\tCorrErr+ NonFatalErr- FatalErr+ UnsupReq-", ("FatalErr",)),
        ("DevSta:\tCorrErr+ NonFatalErr+ FatalErr- UnsupReq-", None),
    ],
)
def test_recorded_errors(register: str, found: tuple[str, ...] | None, tmp_path: Path) -> None:
    text = LSPCI.replace("\tKernel modules: nouveau", f"\t\t{register}\n\tKernel modules: nouveau")
    assert imported_pci(tmp_path, text).gpus[0].aer_status == found


def test_tree_is_refused_with_what_to_record_instead(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lspci -vvv"):
        imported(tmp_path, "-[0000:00]-+-00.0\n           +-01.0-[01]----00.0\n")
