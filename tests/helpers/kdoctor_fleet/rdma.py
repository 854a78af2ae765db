"""RDMA devices in sysfs, as in the kernel's documentation, and as facts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from kdoctor_fleet.facts import JobHost, JobHosts, Network, NetworkInterface, RdmaDevice, RdmaPort

BOARD = "MT_0000000838"


def write_device(root: Path, name: str, pci_path: str, **files: str | None) -> Path:
    """An InfiniBand device of 400 Gbit/s below the PCI path. Use ``__`` for a slash; None removes a file."""
    parts = pci_path.split("/")
    place = root / f"sys/devices/pci{parts[0][:7]}" / pci_path
    values: dict[str, str | None] = {
        "board_id": BOARD,
        "fw_ver": "28.39.1002",
        "hca_type": "MT4129",
        "node_guid": "a088:c203:0012:3456",
        "ports/1/state": "4: ACTIVE",
        "ports/1/phys_state": "5: LinkUp",
        "ports/1/rate": "400 Gb/sec (4X NDR)",
        "ports/1/link_layer": "InfiniBand",
        "ports/1/counters/link_downed": "0",
        "ports/1/counters/symbol_error": "0",
        "ports/1/counters/port_rcv_errors": "0",
        "device/numa_node": "0",
        "device/current_link_speed": "32.0 GT/s PCIe",
        "device/max_link_speed": "32.0 GT/s PCIe",
        "device/current_link_width": "16",
        "device/max_link_width": "16",
        **{key.replace("__", "/"): value for key, value in files.items()},
    }
    place.mkdir(parents=True)
    for bridge in (place, *place.parents[: len(parts) - 1]):
        for kind, text in (("speed", "32.0 GT/s PCIe"), ("width", "16")):
            (bridge / f"max_link_{kind}").write_text(f"{text}\n")
    driver = root / "sys/bus/pci/drivers/mlx5_core"
    driver.mkdir(parents=True, exist_ok=True)
    (place / "driver").symlink_to(driver)
    folder = place / "infiniband" / name
    folder.mkdir(parents=True)
    (folder / "device").symlink_to(place)
    for key, value in values.items():
        if value is not None:
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")
    listed = root / "sys/class/infiniband"
    listed.mkdir(parents=True, exist_ok=True)
    (listed / name).symlink_to(folder)
    return folder


def write_interface(root: Path, name: str, mtu: int = 1500, state: str = "up") -> None:
    """A network interface."""
    folder = root / "sys/class/net" / name
    folder.mkdir(parents=True)
    (folder / "mtu").write_text(f"{mtu}\n")
    (folder / "operstate").write_text(f"{state}\n")


def port(**changes: Any) -> RdmaPort:
    """An active port of 400 Gbit/s without errors."""
    healthy = RdmaPort(
        number=1,
        state="ACTIVE",
        physical_state="LinkUp",
        link_layer="InfiniBand",
        rate_gbits=400.0,
        lanes=4,
        speed="NDR",
        link_downed=0,
        symbol_errors=0,
        receive_errors=0,
    )
    return replace(healthy, **changes)


def device(index: int = 0, *ports: RdmaPort, **changes: Any) -> RdmaDevice:
    """An equal card next to GPU ``index`` of the H100 node, below the same switch (see ``pci.way``)."""
    bus = (index + 1) * 16
    healthy = RdmaDevice(
        name=f"mlx5_{index}",
        driver="mlx5_core",
        board=BOARD,
        firmware="28.39.1002",
        bus_id=f"0000:{bus + 1:02x}:00.0",
        numa_node=index // 4,
        path=(f"0000:{bus - 4:02x}:00.0", f"0000:{bus - 3:02x}:00.0"),
        link_speed="32.0 GT/s PCIe",
        link_speed_max="32.0 GT/s PCIe",
        link_width=16,
        link_width_max=16,
        slot_speed_max="32.0 GT/s PCIe",
        slot_width_max=16,
        ports=ports or (port(),),
    )
    return replace(healthy, **changes)


def network(*devices: RdmaDevice, **changes: Any) -> Network:
    """A machine with these devices and two interfaces."""
    interfaces = (NetworkInterface(name="eth0", mtu=1500, up=True), NetworkInterface(name="lo", mtu=65536))
    return replace(Network(rdma=devices, interfaces=interfaces), **changes)


def two_hosts(own: dict[str, Any] | None = None, other: dict[str, Any] | None = None, **changes: Any) -> JobHosts:
    """A job of two workers that can start."""
    one = JobHost(
        task="worker 0",
        host="node1",
        port=2222,
        own=True,
        resolved=True,
        resolves_back=True,
        local=True,
        port_free=True,
    )
    two = JobHost(
        task="worker 1",
        host="node2",
        port=2222,
        resolved=True,
        resolves_back=True,
        local=False,
        state="refused",
        path_mtu=9000,
        interface_mtu=9000,
    )
    healthy = JobHosts(
        hosts=(replace(one, **(own or {})), replace(two, **(other or {}))),
        clock_source="chronyc",
        clock_synchronized=True,
        clock_offset_s=0.00002,
    )
    return replace(healthy, **changes)
