"""The network between the nodes of a job: RDMA devices, interfaces, and the hosts in TF_CONFIG.

Names and units are those of sysfs (https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband,
https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net). GUIDs, GIDs and IP addresses are not kept.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from kdoctor.facts.base import FactGroup
from kdoctor.facts.bounds import ABOVE_ZERO, POSITIVE, SIGNED, Reason, Within

UNRECORDED = "the recording has no facts about the network"
"""Command output has none, and a job on one machine does not need them."""
_PHYSICAL = re.compile(r"(?:en|eth|ib|hsn|bond|wl)[\w.]*")
"""Names of interfaces that the kernel or an administrator gave to devices; those of containers differ everywhere."""


@dataclass(frozen=True, kw_only=True)
class RdmaPort:
    """A port of an RDMA device. A value that the driver does not provide is None."""

    number: int
    state: str | None = None
    """``DOWN``, ``INIT`` (no subnet manager has configured it), ``ARMED``, ``ACTIVE``."""
    physical_state: str | None = None
    """``LinkUp``, ``Polling`` (no signal from the other end), ``Disabled``, ..."""
    link_layer: str | None = None
    """``InfiniBand``, ``Ethernet`` (RoCE), or ``Unspecified`` (EFA)."""
    rate_gbits: Annotated[float | None, POSITIVE] = None
    """Current rate, Gbit/s."""
    lanes: Annotated[int | None, POSITIVE] = None
    """Current width: 4 for ``4X``."""
    speed: str | None = None
    """Name of the speed of a lane: ``NDR``, ``HDR``, ``EDR``."""
    interface: str | None = None
    """Network interface of a RoCE port."""
    link_downed: int | None = None
    """How often the link went down since the counters were reset, usually when the driver was loaded."""
    symbol_errors: int | None = None
    receive_errors: int | None = None


@dataclass(frozen=True, kw_only=True)
class RdmaDevice:
    """An InfiniBand, RoCE or EFA device (``/sys/class/infiniband``)."""

    name: str
    """``mlx5_0``."""
    driver: str | None = None
    """Kernel driver: ``mlx5_core``, ``bnxt_en``, ``efa``."""
    board: str | None = None
    """Board id (PSID), else the type of the card. Devices with the same one are equal cards."""
    firmware: str | None = None
    bus_id: str | None = None
    """PCI address in sysfs form; functions of one card differ in their last digit."""
    numa_node: int | None = None
    path: tuple[str, ...] | None = None
    """PCI addresses of the bridges above it, the root port first; None if unknown."""
    link_speed: str | None = None
    link_speed_max: str | None = None
    link_width: Annotated[int | None, Within(0, 64)] = None
    link_width_max: Annotated[int | None, Within(0, 64)] = None
    """As in ``PciFunction``."""
    slot_speed_max: str | None = None
    slot_width_max: Annotated[int | None, Within(ABOVE_ZERO, 64)] = None
    """The same of the bridge above it."""
    ports: tuple[RdmaPort, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NetworkInterface:
    """A network interface (``/sys/class/net``)."""

    name: str
    mtu: Annotated[int | None, POSITIVE] = None
    up: bool | None = None
    """Whether it is up (``operstate``); None if its driver does not report it."""


@dataclass(frozen=True, kw_only=True)
class Network(FactGroup):
    """RDMA devices and network interfaces of this machine or container."""

    group: ClassVar[str] = "network"
    unrecorded: ClassVar[str] = UNRECORDED

    rdma: tuple[RdmaDevice, ...] = ()
    """In order of name; empty if the machine has none."""
    interfaces: tuple[NetworkInterface, ...] | None = None
    """In order of name; None if they cannot be read."""

    def device(self, name: str) -> RdmaDevice | None:
        """The RDMA device of that name, or None."""
        return next((device for device in self.rdma if device.name == name), None)

    def shared(self) -> Mapping[str, Mapping[str, str]]:
        """The firmware and speed of RDMA devices, and the MTU of interfaces."""
        found: dict[str, str] = {}
        for device in self.rdma:
            if device.firmware:
                found[f"{device.name}.firmware"] = device.firmware
            for port in device.ports:
                if port.rate_gbits is not None:
                    found[f"{device.name}/{port.number}.gbit-per-second"] = f"{port.rate_gbits:g}"
                if port.link_layer:
                    found[f"{device.name}/{port.number}.link-layer"] = port.link_layer
        for interface in self.interfaces or ():
            if interface.up and interface.mtu is not None and _PHYSICAL.fullmatch(interface.name):
                found[f"{interface.name}.mtu"] = str(interface.mtu)
        return {"network": found}


PeerState = Literal["connected", "refused", "timed-out", "unreachable"]
"""What a connection to a task's port did: a program listens there; the host answered that none does; no answer; the
network or the host refused, with the reason in ``error``."""


@dataclass(frozen=True, kw_only=True)
class JobHost:
    """One task of TF_CONFIG, as seen from this machine."""

    task: str
    """``worker 0``."""
    host: str
    """As written in TF_CONFIG."""
    port: Annotated[int | None, Within(ABOVE_ZERO, 0xFFFF)] = None
    own: bool = False
    """Whether TF_CONFIG says that this process is that task."""
    resolved: bool | None = None
    """Whether the name has an address; None if that did not end in time."""
    resolves_back: bool | None = None
    """Whether the address has a name that leads back to it; None if unknown."""
    local: bool | None = None
    """Whether the address is one of this machine."""
    state: PeerState | None = None
    """For other tasks: the result of a connection."""
    port_free: bool | None = None
    """For this task: whether its port could be bound."""
    error: Reason = None
    """The system's message for what failed, without addresses."""
    interface_mtu: int | None = None
    """MTU of the route's interface."""
    path_mtu: int | None = None
    """MTU of the path to it, as this machine's kernel knows it."""


@dataclass(frozen=True, kw_only=True)
class JobHosts(FactGroup):
    """The hosts of a job over several machines, and this machine's clock."""

    group: ClassVar[str] = "job_hosts"
    unrecorded: ClassVar[str] = UNRECORDED

    hosts: tuple[JobHost, ...] = ()
    """In order of TF_CONFIG; empty if it names at most one task."""
    malformed: Reason = None
    """Why TF_CONFIG could not be read."""
    clock_source: Literal["chronyc", "timedatectl"] | None = None
    """The program that reported the clock; None if none did."""
    clock_synchronized: bool | None = None
    clock_offset_s: Annotated[float | None, SIGNED] = None
    """Seconds by which the clock differs from its time servers."""

    def shared(self) -> Mapping[str, Mapping[str, str]]:
        """Whether the clock is synchronized, and its offset."""
        if self.clock_source is None:
            return {}
        offset = {} if self.clock_offset_s is None else {"offset-seconds": f"{self.clock_offset_s:.6f}"}
        synchronized = "unknown" if self.clock_synchronized is None else "yes" if self.clock_synchronized else "no"
        return {"clock": {**offset, "synchronized": synchronized}}
