"""Facts about the network between the nodes of a job, and about many nodes as their own reports describe them.

Names and units of the network are those of sysfs
(https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband,
https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net). GUIDs, GIDs and IP addresses are not kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from enum import Enum
from typing import Annotated, ClassVar, Literal

from pydantic import AliasPath, Field, StringConstraints

from kdoctor.engine.report import Category, Cause, Conclusion
from kdoctor.facts.base import FactGroup
from kdoctor.facts.bounds import ABOVE_ZERO, POSITIVE, SIGNED, AtMost, Identity, Reason, Within
from kdoctor.facts.node import Node
from kdoctor.model import Action, Severity, Status
from kdoctor.records import record

UNRECORDED = "the recording has no facts about the network"
"""Command output has none, and a job on one machine does not need them."""
_PHYSICAL = re.compile(r"(?:en|eth|ib|hsn|bond|wl)[\w.]*")
"""Names of interfaces that the kernel or an administrator gave to devices; those of containers differ everywhere."""


@record
class RdmaPort:
    """A port of an RDMA device. A value that the driver does not provide is None."""

    number: Annotated[int, Identity()]
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


@record
class RdmaDevice:
    """An InfiniBand, RoCE or EFA device (``/sys/class/infiniband``)."""

    name: Annotated[str, Identity()]
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
    link_width: Annotated[int | None, Within(0, 64), AtMost("link_width_max")] = None
    link_width_max: Annotated[int | None, Within(0, 64)] = None
    """As in ``PciFunction``."""
    slot_speed_max: str | None = None
    slot_width_max: Annotated[int | None, Within(ABOVE_ZERO, 64)] = None
    """The same of the bridge above it."""
    ports: tuple[RdmaPort, ...] = ()


@record
class NetworkInterface:
    """A network interface (``/sys/class/net``)."""

    name: Annotated[str, Identity()]
    mtu: Annotated[int | None, POSITIVE] = None
    up: bool | None = None
    """Whether it is up (``operstate``); None if its driver does not report it."""


@record
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


@record
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


@record
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


Section = Mapping[str, str]
"""Facts of one kind, by name: ``{"cudnn": "9.3.0"}``."""


class Nodes(str):
    """Nodes as a report names them in short: ``node[03,17-19]``. It knows their names."""

    __slots__ = ("names",)
    names: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str], shown: Callable[[Iterable[str]], str] = ",".join) -> Nodes:
        """These nodes, which a function writes in short."""
        every = tuple(names)
        found = cls(shown(every))
        found.names = every
        return found


@record
class JobConfig:
    """TF_CONFIG of one node."""

    cluster: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Addresses by type of task: ``{"worker": ("node1:2222", "node2:2222")}``."""
    task: str | None = None
    """This node's task: ``worker 0``; None if it names none."""
    malformed: Reason = None
    """Why it could not be read."""

    @property
    def tasks(self) -> dict[str, str]:
        """Each task with its address: ``{"worker 0": "node1:2222"}``."""
        return {f"{kind} {index}": where for kind, all_ in self.cluster.items() for index, where in enumerate(all_)}

    @classmethod
    def read(cls, text: str) -> JobConfig:
        """TF_CONFIG as a job reads it."""
        try:
            config = json.loads(text)
        except (ValueError, RecursionError):
            return cls(malformed="it is not JSON")
        cluster = config.get("cluster", {}) if isinstance(config, dict) else None
        if not isinstance(cluster, dict):
            return cls(malformed="it is not an object with a cluster")
        for kind, addresses in cluster.items():
            if not isinstance(addresses, list) or not all(isinstance(address, str) for address in addresses):
                return cls(malformed=f"cluster.{kind} is not a list of addresses")
        task = config.get("task")
        named = task if isinstance(task, dict) and {"type", "index"} <= task.keys() else None
        return cls(
            cluster={kind: tuple(addresses) for kind, addresses in cluster.items()},
            task=f"{named['type']} {named['index']}" if named else None,
        )


class NodeState(str, Enum):
    """What a job may do with a node."""

    PASSED = "passed"
    """Use it."""
    FAILED = "failed"
    """Its own checks failed, or it differs from the other nodes in what a job needs equal."""
    UNKNOWN = "unknown"
    """Its own checks or the comparison were inconclusive."""
    SILENT = "silent"
    """It was expected and did not report."""


@record
class NodeResult:
    """The result of one check on one node."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z]{1,32}\.[a-z0-9-]{1,96}$")]
    title: str
    status: Status
    severity: Severity
    reason: str | None = None
    accepted: str | None = None
    scenario: str | None = None
    left_out: bool = False
    blocked_by: str | None = None
    action: Annotated[Action, Field(validation_alias=AliasPath("findings", 0, "remedy", "action"))] = Action.CONFIGURE
    """The kind of work that its first fix requires."""


@record
class FleetNode:
    """One node, from its newest report."""

    name: str
    source: str = ""
    """The file of the report."""
    checklist: str
    """What it was asked: name, version, digest, options: ``multi-gpu-keras, version 1 (3f9a12cd) --no-smoke``."""
    name_of_checklist: str = ""
    expectations: str = ""
    """Digest of what the checklist expects."""
    options: str = ""
    """The options that changed what it was asked."""
    python: str = ""
    """The path of the interpreter that was examined; empty if it was not recorded."""
    kdoctor: str
    """The version of kdoctor that made the report."""
    verdict: Conclusion = Conclusion.PASS
    """The node's own."""
    reason: str = ""
    """Of the verdict."""
    results: tuple[NodeResult, ...] = ()
    categories: tuple[Category, ...] = ()
    causes: tuple[Cause, ...] = ()
    sections: Mapping[str, Section] = field(default_factory=dict)
    """The recorded facts by section, as in a lock: ``driver``, ``packages``, ... Empty in reports of older kdoctors."""
    node: Node | None = None
    """Its place in the job; None in reports of older kdoctors."""
    job: JobConfig | None = None
    """None if TF_CONFIG is not set, or not recorded."""
    steps: Mapping[str, float] = field(default_factory=dict)
    """Median seconds of a training step, by training: ``smoke.baseline/mirrored, 8 x gpu``."""
    started_at: str = ""
    """By the node's own clock: UTC, ISO 8601."""
    asked_at: str = ""
    """By the clock of the machine that asked for the report; empty if ``kdoctor fleet run`` did not."""


@record
class UnreadReport:
    """A file that is not a usable report."""

    source: str
    """The file."""
    reason: str


@record
class BadNode:
    """A node that trains with no other node."""

    name: str
    partner: str
    """A node that trains with others, with which it failed."""
    problem: str


@record
class BadLink:
    """Two nodes that train with others, and not with each other."""

    nodes: tuple[str, str]
    leave_out: str
    """The one of them without which the fewest nodes are left out."""
    problem: str


@record
class Together:
    """A training over all good nodes."""

    nodes: tuple[str, ...]
    outcome: Literal["trained", "failed", "untested"]
    problem: str = ""
    smallest: tuple[str, ...] = ()
    """The smallest group that failed."""
    trained: tuple[tuple[str, ...], ...] = ()
    """Parts of it that trained."""


@record
class PairTests:
    """What trainings over several nodes showed."""

    nodes: tuple[str, ...]
    """The nodes that were paired."""
    proven: tuple[str, ...]
    """Those that trained with at least one other."""
    pairs: int
    """How many pairs were tested."""
    failed: int = 0
    """How many of them failed."""
    bad: tuple[BadNode, ...] = ()
    links: tuple[BadLink, ...] = ()
    undecided: Mapping[str, str] = field(default_factory=dict)
    """Nodes about which the pairs show nothing, with the reason."""
    together: Together | None = None
    """None if fewer than three nodes are good."""
    gbs: float | None = None
    """Median GB/s of the all-reduce of a pair."""
    interrupted: bool = False


@record
class Fleet(FactGroup):
    """The nodes whose reports were brought together."""

    group: ClassVar[str] = "fleet"
    in_snapshots: ClassVar[bool] = False

    nodes: tuple[FleetNode, ...]
    """In order of name, each once."""
    expected: tuple[str, ...] = ()
    """Names of the nodes that should report, in order; empty if nothing says which."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why nodes did not report, as far as ``kdoctor fleet run`` knows."""
    unread: tuple[UnreadReport, ...] = ()
    pairs: PairTests | None = None
    """None if no training over several nodes was requested."""
    merged_at: str = ""
    """When the reports were brought together: UTC, ISO 8601."""
    fold: Callable[[Iterable[str]], Nodes] = Nodes.of
    """Writes names of nodes in short: ``node[03,17-19]``. Subjects that it writes are these nodes."""

    @property
    def silent(self) -> tuple[str, ...]:
        """The expected nodes without a report."""
        reported = {node.name for node in self.nodes}
        return tuple(name for name in self.expected if name not in reported)
