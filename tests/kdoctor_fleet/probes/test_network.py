"""RDMA devices and interfaces from trees as the kernel documents them."""

import os
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_fleet.rdma import BOARD, write_device, write_interface
from helpers.kdoctor_fleet.rdma import port as healthy_port
from helpers.machine import context
from kdoctor.facts import Unavailable
from kdoctor_fleet.facts import Network, NetworkInterface
from kdoctor_fleet.probes.network import collect

PATH = "0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0"


def network(root: Path) -> Network:
    found = collect(context(root))[Network]
    assert isinstance(found, Network)
    return found


def test_infiniband_device_is_read_with_its_place(tmp_path: Path) -> None:
    write_device(tmp_path, "mlx5_0", PATH, device__numa_node="1", ports__1__counters__link_downed="3")
    (device,) = network(tmp_path).rdma
    assert (device.name, device.driver, device.board, device.firmware) == ("mlx5_0", "mlx5_core", BOARD, "28.39.1002")
    assert (device.bus_id, device.numa_node) == ("0000:18:00.0", 1)
    assert device.path == ("0000:15:01.0", "0000:16:00.0", "0000:17:00.0")
    assert (device.link_width, device.link_width_max, device.slot_width_max) == (16, 16, 16)
    (port,) = device.ports
    assert port == healthy_port(link_downed=3)


@cases(
    ("400 Gb/sec (4X NDR)", (400.0, 4, "NDR")),
    ("100 Gb/sec (2X HDR)", (100.0, 2, "HDR")),
    ("2.5 Gb/sec (1X SDR)", (2.5, 1, "SDR")),
    ("40 Gb/sec (4X)", (40.0, 4, None)),
    ("25 Gb/sec", (25.0, None, None)),
    ("", (None, None, None)),
    ("unknown", (None, None, None)),
)
def test_rate_is_read(tmp_path: Path, rate: str, expected: tuple[object, ...]) -> None:
    write_device(tmp_path, "mlx5_0", PATH, ports__1__rate=rate)
    (port,) = network(tmp_path).rdma[0].ports
    assert (port.rate_gbits, port.lanes, port.speed) == expected


def test_roce_port_has_its_interface(tmp_path: Path) -> None:
    write_device(tmp_path, "mlx5_0", PATH, ports__1__link_layer="Ethernet", ports__1__gid_attrs__ndevs__0="ens1f0np0")
    write_device(tmp_path, "mlx5_1", PATH.replace(":18:", ":19:"), ports__1__link_layer="Ethernet")
    (tmp_path / "sys/class/infiniband/mlx5_1/device/net/ens2").mkdir(parents=True)
    assert [device.ports[0].interface for device in network(tmp_path).rdma] == ["ens1f0np0", "ens2"]


def test_devices_are_in_natural_order(tmp_path: Path) -> None:
    for index in (10, 2, 1):
        write_device(tmp_path, f"mlx5_{index}", f"0000:15:01.0/0000:{index:02x}:00.0")
    assert [device.name for device in network(tmp_path).rdma] == ["mlx5_1", "mlx5_2", "mlx5_10"]


def test_missing_files_are_unknown(tmp_path: Path) -> None:
    names = ("board_id", "hca_type", "fw_ver", "ports/1/state", "ports/1/counters/link_downed", "device/numa_node")
    write_device(tmp_path, "efa_0", PATH, **dict.fromkeys(names))
    (device,) = network(tmp_path).rdma
    assert (device.board, device.firmware, device.numa_node) == (None, None, None)
    assert (device.ports[0].state, device.ports[0].link_downed) == (None, None)


def test_broken_link_to_the_device_loses_its_place_only(tmp_path: Path) -> None:
    folder = write_device(tmp_path, "mlx5_0", PATH)
    (folder / "device").unlink()
    (folder / "device").symlink_to("/nowhere")
    (device,) = network(tmp_path).rdma
    assert (device.bus_id, device.path, device.ports[0].state) == (None, None, "ACTIVE")


def test_interfaces_are_read(tmp_path: Path) -> None:
    write_interface(tmp_path, "eth0", mtu=9000)
    write_interface(tmp_path, "ib0", mtu=4092, state="down")
    write_interface(tmp_path, "lo", mtu=65536, state="unknown")
    (tmp_path / "sys/class/net/bonding_masters").write_text("\n")
    assert network(tmp_path).interfaces == (
        NetworkInterface(name="eth0", mtu=9000, up=True),
        NetworkInterface(name="ib0", mtu=4092, up=False),
        NetworkInterface(name="lo", mtu=65536, up=None),
    )


def test_machine_without_rdma_has_no_device(tmp_path: Path) -> None:
    (tmp_path / "sys/class").mkdir(parents=True)
    assert network(tmp_path) == Network(rdma=(), interfaces=None)


def test_system_without_sysfs_is_unavailable(tmp_path: Path) -> None:
    assert isinstance(collect(context(tmp_path))[Network], Unavailable)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_folder_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "sys/class/infiniband").mkdir(parents=True, mode=0o000)
    assert isinstance(collect(context(tmp_path))[Network], Unavailable)


def test_identities_are_not_kept(tmp_path: Path) -> None:
    write_device(tmp_path, "mlx5_0", PATH)
    assert "a088" not in repr(network(tmp_path))


def test_device_whose_ports_cannot_be_listed_is_unavailable(tmp_path: Path) -> None:
    write_device(tmp_path, "mlx5_0", PATH)
    device = tmp_path / "sys/class/infiniband/mlx5_9"
    device.mkdir()
    (device / "ports").symlink_to("ports")
    found = collect(context(tmp_path))[Network]
    assert isinstance(found, Unavailable)
    assert "ports" in found.unavailable


def test_names_with_unusual_digits_are_sorted(tmp_path: Path) -> None:
    for name in ("\u00b2", "mlx5_0", "1\u00b2"):
        (tmp_path / "sys/class/infiniband" / name).mkdir(parents=True)
    assert len(network(tmp_path).rdma) == 3
