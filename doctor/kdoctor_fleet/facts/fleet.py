"""Many nodes of one job or cluster, as their own reports describe them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import AliasPath, Field, StringConstraints

from kdoctor.engine.report import Category, Cause, Conclusion
from kdoctor.facts.base import FactGroup
from kdoctor.facts.bounds import Reason
from kdoctor.facts.node import Node
from kdoctor.model import Action, Severity, Status

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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class NodeResult:
    """The result of one check on one node."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z]{1,32}\.[a-z0-9-]{1,96}$")]
    title: str
    status: Status
    severity: Severity
    reason: str | None = None
    accepted: str | None = None
    action: Annotated[Action, Field(validation_alias=AliasPath("findings", 0, "remedy", "action"))] = Action.CONFIGURE
    """The kind of work that its first fix requires."""


@dataclass(frozen=True, kw_only=True)
class FleetNode:
    """One node, from its newest report."""

    name: str
    source: str = ""
    """The file of the report."""
    checklist: str
    """Name and version of the checklist: ``multi-gpu-keras, version 1``."""
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


@dataclass(frozen=True, kw_only=True)
class UnreadReport:
    """A file that is not a usable report."""

    source: str
    """The file."""
    reason: str


@dataclass(frozen=True, kw_only=True)
class BadNode:
    """A node that trains with no other node."""

    name: str
    partner: str
    """A node that trains with others, with which it failed."""
    problem: str


@dataclass(frozen=True, kw_only=True)
class BadLink:
    """Two nodes that train with others, and not with each other."""

    nodes: tuple[str, str]
    leave_out: str
    """The one of them without which the fewest nodes are left out."""
    problem: str


@dataclass(frozen=True, kw_only=True)
class Together:
    """A training over all good nodes."""

    nodes: tuple[str, ...]
    outcome: Literal["trained", "failed", "untested"]
    problem: str = ""
    smallest: tuple[str, ...] = ()
    """The smallest group that failed."""
    trained: tuple[tuple[str, ...], ...] = ()
    """Parts of it that trained."""


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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
