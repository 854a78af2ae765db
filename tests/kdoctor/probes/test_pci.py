from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases
from helpers.machine import add_pci_device, context
from helpers.trees import ACS_OFF, ACS_REDIRECT, Slot, Tree
from kdoctor.facts import PciDevice, PciDevices, Unavailable, link_generation
from kdoctor.probes.pci import collect


def read(root: Path) -> PciDevices:
    facts = collect(context(root))[PciDevices]
    assert isinstance(facts, PciDevices), facts
    return facts


def unavailable(root: Path) -> str:
    facts = collect(context(root))[PciDevices]
    assert isinstance(facts, Unavailable)
    return facts.unavailable


def test_gpu_is_read_from_sysfs(tmp_path: Path) -> None:
    add_pci_device(tmp_path, "0000:19:00.0", current_link_speed="16.0 GT/s PCIe", current_link_width="8", numa_node="0")
    assert read(tmp_path).devices == (
        PciDevice(
            bus_id="0000:19:00.0",
            device_id="2330",
            device_class="0302",
            driver="nvidia",
            link_speed="16.0 GT/s PCIe",
            link_speed_max="32.0 GT/s PCIe",
            link_width=8,
            link_width_max=16,
            numa_node=0,
            aer_counted=False,
        ),
    )


def test_regions_without_addresses_are_counted(tmp_path: Path) -> None:
    folder = add_pci_device(tmp_path, "0000:19:00.0")
    given = "0x00000000d8000000 0x00000000d8ffffff 0x0000000000040200\n"
    lost = "0x0000000000000000 0x00000007ffffffff 0x000000002014220c\n"
    unused = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    folder.joinpath("resource").write_text(f"{given}{lost}{unused * 4}{lost}", encoding="utf-8")  # the last: its ROM
    assert read(tmp_path).devices[0].regions_without_address == 1


def test_switches_and_audio_are_not_gpus(tmp_path: Path) -> None:
    add_pci_device(tmp_path, "0000:01:00.0", **{"class": "0x030000"})
    add_pci_device(tmp_path, "0000:01:00.1", **{"class": "0x040300"})
    add_pci_device(tmp_path, "0000:82:00.0", **{"class": "0x068000"})
    facts = read(tmp_path)
    assert len(facts.devices) == 3
    assert [device.bus_id for device in facts.gpus] == ["0000:01:00.0"]


def test_missing_sysfs_files_leave_fields_unknown(tmp_path: Path) -> None:
    folder = add_pci_device(
        tmp_path, "0000:19:00.0", driver=None, numa_node="-1", current_link_speed="Unknown", max_link_width="?"
    )
    (folder / "max_link_speed").unlink()
    (device,) = read(tmp_path).devices
    assert (device.driver, device.numa_node, device.link_speed) == (None, None, None)
    assert (device.link_speed_max, device.link_width_max) == (None, None)


def test_bus_without_nvidia_devices_is_empty(tmp_path: Path) -> None:
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    assert read(tmp_path).devices == ()


def test_missing_bus_is_unavailable(tmp_path: Path) -> None:
    assert "/sys/bus/pci/devices" in unavailable(tmp_path)


def test_unreadable_bus_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "sys/bus/pci").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices").write_text("")
    assert "cannot be read" in unavailable(tmp_path)


def test_unreadable_device_makes_bus_unavailable(tmp_path: Path) -> None:
    add_pci_device(tmp_path, "0000:19:00.0")
    (tmp_path / "sys/bus/pci/devices/0000:1a:00.0/vendor").mkdir(parents=True)
    assert "0000:1a:00.0/vendor" in unavailable(tmp_path)


def test_vanished_device_is_ignored(tmp_path: Path) -> None:
    add_pci_device(tmp_path, "0000:19:00.0")
    (tmp_path / "sys/bus/pci/devices/0000:1a:00.0").symlink_to(tmp_path / "gone")
    assert len(read(tmp_path).devices) == 1


SWITCHED = Slot(path="15:01.0/16:00.0/17:00.0/19:00.0")


def device(root: Path, slot: Slot = SWITCHED, **changes: Any) -> PciDevice:
    Tree(slots=(slot,), **changes).write(root)
    (found,) = read(root).devices
    return found


def test_path_lists_bridges_from_root_port(tmp_path: Path) -> None:
    found = device(tmp_path)
    assert found.path is not None
    assert [bridge.bus_id for bridge in found.path] == ["0000:15:01.0", "0000:16:00.0", "0000:17:00.0"]
    assert {(bridge.vendor_id, bridge.link_speed, bridge.link_width_max) for bridge in found.path} == {
        ("1000", "32.0 GT/s PCIe", 16)
    }


def test_gpu_in_virtual_machine_has_no_bridges(tmp_path: Path) -> None:
    found = device(tmp_path, Slot(path="00:05.0", node=None, generation=None, width=None))
    assert (found.path, found.numa_node, found.link_width) == ((), None, None)


def test_nonzero_pci_domain(tmp_path: Path) -> None:
    found = device(tmp_path, Slot(path="00:00.0/01:00.0", domain=8))
    assert found.bus_id == "0008:01:00.0"
    assert found.path is not None
    assert found.path[0].bus_id == "0008:00:00.0"


@cases((ACS_OFF, False), (ACS_REDIRECT, True), (0x01, False), (0x10, True))
def test_acs_control_of_bridges_is_read(tmp_path: Path, *, control: int, redirects: bool) -> None:
    found = device(tmp_path, Slot(path=SWITCHED.path, acs=control))
    assert [(bridge.acs_control, bridge.acs_redirects) for bridge in found.path or ()] == [(control, redirects)] * 3
    # The GPU has no ACS, which is equivalent to ACS being off.
    assert (found.acs_control, found.acs_redirects) == (0, False)


@pytest.mark.parametrize("readable", [64, 256])
def test_acs_is_unknown_without_root(tmp_path: Path, readable: int) -> None:
    found = device(tmp_path, Slot(path=SWITCHED.path, acs=ACS_REDIRECT), config_bytes=readable)
    assert {bridge.acs_redirects for bridge in found.path or ()} == {None}
    assert found.acs_redirects is None


def test_looping_capability_list_ends(tmp_path: Path) -> None:
    found = device(tmp_path)
    config = tmp_path / "sys/bus/pci/devices/0000:19:00.0/config"
    space = bytearray(4096)
    space[0x100:0x104] = (0x0001 | 0x100 << 20).to_bytes(4, "little")
    config.write_bytes(space)
    assert read(tmp_path).devices[0].acs_control == found.acs_control == 0


def test_device_off_the_bus_has_unknown_acs(tmp_path: Path) -> None:
    found = device(tmp_path, Slot(path=SWITCHED.path, lost=True))
    assert (found.link_speed, found.link_width, found.acs_control, found.responds) == (None, None, None, False)
    assert {bridge.responds for bridge in found.path or ()} == {True}
    assert (found.link_width_max, found.driver) == (16, "nvidia")


def test_aer_counters_are_read(tmp_path: Path) -> None:
    device(tmp_path)
    folder = tmp_path / "sys/bus/pci/devices/0000:19:00.0"
    (folder / "aer_dev_correctable").write_text("RxErr 3\nBadTLP 4\nTOTAL_ERR_COR 7\n")
    (folder / "aer_dev_fatal").write_text("TOTAL_ERR_FATAL many\n")
    (folder / "aer_dev_nonfatal").unlink()
    found = read(tmp_path).devices[0]
    assert (found.aer_correctable, found.aer_nonfatal, found.aer_fatal) == (7, None, None)
    (folder / "aer_dev_correctable").write_text(f"TOTAL_ERR_COR {'9' * 5000}\n")
    assert (read(tmp_path).devices[0].aer_correctable, read(tmp_path).devices[0].aer_counted) == (None, True)
    (folder / "aer_dev_fatal").unlink()
    assert read(tmp_path).devices[0].aer_counted is False


@cases(("identity", "identity"), ("DMA", "DMA"), ("DMA-FQ", "DMA-FQ"), ("something new", None))
def test_iommu_group_and_type(tmp_path: Path, kind: str, expected: str | None) -> None:
    found = device(tmp_path, iommu=kind)
    assert (found.iommu_group, found.iommu_type) == (1, expected)


def test_local_cpus_and_subsystem(tmp_path: Path) -> None:
    found = device(tmp_path, Slot(path=SWITCHED.path, node=1), cpus=16)
    assert (found.local_cpus, found.subsystem) == (tuple(range(8, 16)), "10de:16c1")


def test_local_cpus_from_mask(tmp_path: Path) -> None:
    device(tmp_path)
    folder = tmp_path / "sys/bus/pci/devices/0000:19:00.0"
    (folder / "local_cpulist").unlink()
    (folder / "local_cpus").write_text("00000001,00000005\n")
    assert read(tmp_path).devices[0].local_cpus == (0, 2, 32)


@cases(
    ("2.5 GT/s PCIe", 1),
    ("5.0 GT/s PCIe", 2),
    ("8.0 GT/s PCIe", 3),
    ("16GT/s", 4),
    ("32.0 GT/s PCIe", 5),
    ("64.0 GT/s PCIe", 6),
    ("Unknown", None),
    ("", None),
    (None, None),
)
def test_link_speed_is_converted_to_generation(speed: str | None, generation: int | None) -> None:
    assert link_generation(speed) == generation
