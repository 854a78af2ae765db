from pathlib import Path

from helpers.machine import add_pci_device, context
from kdoctor.facts import PciDevice, PciDevices, Unavailable
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
    add_pci_device(tmp_path, "0000:19:00.0", current_link_speed="16.0 GT/s PCIe", current_link_width="8", numa_node="1")
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
            numa_node=1,
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
