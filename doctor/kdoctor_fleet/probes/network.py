"""Reads RDMA devices and network interfaces from sysfs.

Sources: https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband and drivers/infiniband/core/sysfs.c
for the format of state and rate; https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net.
"""

import re
from pathlib import Path
from typing import Any

from kdoctor.facts import Facts, Unavailable
from kdoctor.probes.files import link_target, read_int, read_quietly, read_speed, read_width, reason
from kdoctor.probes.probe import Context, Probe
from kdoctor_fleet.facts import Network, NetworkInterface, RdmaDevice, RdmaPort

_STATE = re.compile(r"\d+: *(\w+)")
_RATE = re.compile(r"(?P<rate>\d+(?:\.\d+)?) Gb/sec(?: \((?P<lanes>\d+)X(?: (?P<speed>\w+))?\))?")
"""``400 Gb/sec (4X NDR)``."""
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def collect(context: Context) -> Facts:
    """Every RDMA device and interface; a machine without RDMA has no such folder."""
    root = context.root
    if not (root / "sys/class").is_dir():
        return {Network: Unavailable(unavailable="/sys/class does not exist: the network devices are not visible")}
    try:
        folders = _entries(root / "sys/class/infiniband")
        devices = tuple(map(_device, folders))
        interfaces = _interfaces(root / "sys/class/net")
    except OSError as error:
        return {Network: Unavailable(unavailable=f"the network devices cannot be read: {reason(error)}")}
    return {Network: Network(rdma=devices, interfaces=interfaces)}


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir(), key=_natural)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _natural(path: Path) -> list[tuple[int, str]]:
    """A key that sorts ``mlx5_10`` after ``mlx5_9``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def _interfaces(folder: Path) -> tuple[NetworkInterface, ...] | None:
    if not folder.is_dir():
        return None
    return tuple(
        NetworkInterface(name=entry.name, mtu=read_int(entry / "mtu"), up=_is_up(entry))
        for entry in _entries(folder)
        if entry.is_dir()  # bonding_masters is a file
    )


def _is_up(entry: Path) -> bool | None:
    return {"up": True, "down": False, "lowerlayerdown": False}.get(read_quietly(entry / "operstate") or "")


def _device(folder: Path) -> RdmaDevice:
    place = folder / "device"
    node = read_int(place / "numa_node")
    return RdmaDevice(
        name=folder.name,
        driver=link_target(place / "driver"),
        board=read_quietly(folder / "board_id") or read_quietly(folder / "hca_type") or None,
        firmware=read_quietly(folder / "fw_ver") or None,
        numa_node=node if node is not None and node >= 0 else None,
        link_speed=read_speed(place / "current_link_speed"),
        link_speed_max=read_speed(place / "max_link_speed"),
        link_width=read_width(place / "current_link_width"),
        link_width_max=read_width(place / "max_link_width"),
        ports=tuple(_port(entry, place) for entry in _entries(folder / "ports") if entry.name.isdecimal()),
        **_location(place),
    )


def _location(place: Path) -> dict[str, Any]:
    """Address and bridges, from the device's path in /sys/devices."""
    try:
        parts = [part for part in place.resolve(strict=True).parts if _ADDRESS.fullmatch(part)]
    except OSError:
        parts = []
    if not parts:
        return {}
    above = place.resolve().parent
    slot = {
        "slot_speed_max": read_speed(above / "max_link_speed"),
        "slot_width_max": read_width(above / "max_link_width"),
    }
    return {"bus_id": parts[-1], "path": tuple(parts[:-1]), **slot}


def _port(folder: Path, place: Path) -> RdmaPort:
    rate = _RATE.match(read_quietly(folder / "rate") or "")
    counters = folder / "counters"
    return RdmaPort(
        number=int(folder.name),
        state=_state(folder / "state"),
        physical_state=_state(folder / "phys_state"),
        link_layer=read_quietly(folder / "link_layer") or None,
        rate_gbits=float(rate["rate"]) if rate else None,
        lanes=int(rate["lanes"]) if rate and rate["lanes"] else None,
        speed=rate["speed"] if rate else None,
        interface=_interface(folder, place),
        link_downed=read_int(counters / "link_downed"),
        symbol_errors=read_int(counters / "symbol_error"),
        receive_errors=read_int(counters / "port_rcv_errors"),
    )


def _interface(folder: Path, place: Path) -> str | None:
    """The interface of the port's first GID, else the only one of the device."""
    named = read_quietly(folder / "gid_attrs/ndevs/0")
    if named:
        return named
    try:
        found = [entry.name for entry in _entries(place / "net")]
    except OSError:
        return None
    return found[0] if len(found) == 1 else None


def _state(path: Path) -> str | None:
    found = _STATE.match(read_quietly(path) or "")
    return found[1] if found else None


PROBE = Probe(name="network", provides=(Network,), collect=collect, deadline_s=10)
