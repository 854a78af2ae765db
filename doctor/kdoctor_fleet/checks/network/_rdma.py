"""Shared by checks of RDMA devices (InfiniBand, RoCE, EFA)."""

import re
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

from kdoctor.facts import Environment, Unavailable
from kdoctor.model import NotApplicable, Outcome, Remedy, Unjudged
from kdoctor_fleet.facts import Network, RdmaDevice, RdmaPort

HCA = "NCCL_IB_HCA"
LOOK_AT_PORTS = ("grep -H . /sys/class/infiniband/*/ports/*/{state,phys_state,rate}", "rdma link")
NO_RDMA = NotApplicable(reason="this machine has no RDMA device (InfiniBand, RoCE or EFA)")
_LISTED = re.compile(r"(?P<exclude>\^?)(?P<exact>=?)(?P<names>.*)")


class Port(NamedTuple):
    """A port with its device."""

    device: RdmaDevice
    port: RdmaPort

    @property
    def subject(self) -> str:
        """The port's name in reports."""
        return f"{self.device.name} port {self.port.number}"

    @property
    def active(self) -> bool:
        """Whether it carries data."""
        return self.port.state == "ACTIVE"

    @property
    def kind(self) -> tuple[str | None, str | None]:
        """Ports of the same kind are equal: those of the same card and link layer."""
        return self.device.board, self.port.link_layer

    @property
    def rate(self) -> str:
        """``400 Gbit/s (4X NDR)``."""
        lanes = f"{self.port.lanes}X" if self.port.lanes else ""
        width = " ".join(filter(None, (lanes, self.port.speed)))
        rate = "rate unknown" if self.port.rate_gbits is None else f"{self.port.rate_gbits:g} Gbit/s"
        return f"{rate} ({width})" if width else rate


class Listed(NamedTuple):
    """A list of names as NCCL reads it (``parseStringList``): ``^=a,b:1``."""

    exclude: bool
    exact: bool
    entries: tuple[str, ...]

    def names(self, entry: str, name: str, port: int | None = None) -> bool:
        """Whether an entry names this device, and its port if the entry has one."""
        wanted, colon, number = entry.partition(":") if port is not None else (entry, "", "")
        if colon and number != str(port):
            return False
        return name == wanted if self.exact else name.startswith(wanted)

    def selects(self, name: str, port: int | None = None) -> bool:
        """Whether the list leaves this device for NCCL to use."""
        return any(self.names(entry, name, port) for entry in self.entries) != self.exclude


def parse_list(value: str | None) -> Listed | None:
    """The list; None if the variable is not set or empty, which selects everything."""
    found = _LISTED.fullmatch((value or "").strip())
    entries = tuple(filter(None, (word.strip() for word in (found["names"] if found else "").split(","))))
    return Listed(bool(found["exclude"]), bool(found["exact"]), entries) if found and entries else None


def hca_list(environment: Environment | Unavailable) -> Listed | None:
    """The devices that NCCL_IB_HCA selects; None if it does not restrict them."""
    return parse_list(environment.get(HCA)) if isinstance(environment, Environment) else None


def ports(network: Network, chosen: Listed | None = None) -> tuple[Port, ...]:
    """The ports, or those that NCCL_IB_HCA selects."""
    found = (Port(device, port) for device in network.rdma for port in device.ports)
    return tuple(one for one in found if chosen is None or chosen.selects(one.device.name, one.port.number))


def active_ports(network: Network, environment: Environment | Unavailable) -> Generator[Outcome, None, list[Port]]:
    """The active ports that the job may use. Yields what was not read, and why there are none."""
    if not network.rdma:
        yield NO_RDMA
        return []
    used = ports(network, hca_list(environment))
    for device in network.rdma:
        if not device.ports:
            yield Unjudged(subject=device.name, reason="its ports were not read")
    for one in used:
        if one.port.state is None:
            yield Unjudged(subject=one.subject, reason="its state was not read")
    found = [one for one in used if one.active]
    if not found:
        yield NotApplicable(reason="no RDMA port that the job may use is active")
    return found


def alike(found: Sequence[Port]) -> Iterator[tuple[Port, list[Port]]]:
    """Each port with the others of its kind. A port of an unknown card has none."""
    for one in found:
        yield one, [other for other in found if other is not one and one.kind[0] and other.kind == one.kind]


def inspect(summary: str, *look: str) -> Remedy:
    """A fix at the cable, the card or the switch."""
    return Remedy.inspect(summary, *look or LOOK_AT_PORTS)
