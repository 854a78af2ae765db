"""The record of trainings over several nodes, next to the reports of the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from kdoctor.documents import Document, Part
from kdoctor.errors import UsageError
from kdoctor.fleet.names import MOST_NODES
from kdoctor.fleet.pairs.schedule import Trial
from kdoctor.fleet.run_record import read_record
from kdoctor.output import write_atomically
from kdoctor.version import __version__

SCHEMA: Literal["kdoctor/fleet-pairs/v1"] = "kdoctor/fleet-pairs/v1"
FILE = "fleet-pairs.json"


class WorkerOutcome(Part):
    """What one node said about a training."""

    node: str
    verdict: Annotated[str, Field(description="Of its report; empty if it sent none.")]
    problem: Annotated[str, Field(description="What is wrong, or why it sent no report; empty if it trained.")] = ""
    hung: Annotated[bool, Field(description="Whether it passed its time limit.")] = False
    phase: Annotated[str | None, Field(description="The phase in which it ended, if it did not finish.")] = None
    stacks: Annotated[str | None, Field(description="Python stacks of all threads, if it hung or crashed.")] = None
    gbs: Annotated[float | None, Field(description="GB/s that its all-reduce sent from each replica.")] = None
    seconds: float = 0.0


class TrialEntry(Part):
    """A training over some nodes."""

    nodes: tuple[str, ...]
    outcome: Literal["trained", "failed", "untested"]
    problem: str = ""
    hung: Annotated[bool, Field(description="Whether every worker that failed waited until its time limit.")] = False
    gbs: Annotated[float | None, Field(description="The lowest speed of its workers.")] = None
    workers: tuple[WorkerOutcome, ...]

    @property
    def trial(self) -> Trial:
        """Without the workers."""
        return Trial(nodes=self.nodes, outcome=self.outcome, problem=self.problem, hung=self.hung, gbs=self.gbs)


class FleetPairs(Document):
    """Trainings over several nodes: in pairs, and of all nodes together."""

    schema_: Annotated[Literal["kdoctor/fleet-pairs/v1"], Field(alias="schema")] = SCHEMA
    kdoctor: Annotated[str, Field(description="Version of kdoctor.")] = __version__
    nodes: Annotated[tuple[str, ...], Field(max_length=MOST_NODES, description="In the order of the first round.")]
    started_at: Annotated[str, Field(description="UTC, ISO 8601.")]
    full_matrix: Annotated[bool, Field(description="Whether every pair was to be tested.")]
    interrupted: bool = False
    pairs: tuple[TrialEntry, ...] = ()
    groups: Annotated[tuple[TrialEntry, ...], Field(description="All good nodes, and halves of what hangs.")] = ()


def write_pairs(folder: Path, pairs: FleetPairs) -> None:
    """Keep the record.

    Raises:
        OutputError: it cannot be written.
    """
    write_atomically(folder / FILE, pairs.to_json())


def read_pairs(folder: Path) -> FleetPairs | None:
    """The record of a folder; None if it has none.

    Raises:
        UsageError: it is not a record.
    """
    path = folder / FILE
    pairs = read_record(path, FleetPairs, _names)
    if pairs is None:
        return None
    if any(len(entry.nodes) != 2 or len(set(entry.nodes)) != 2 for entry in pairs.pairs):  # noqa: PLR2004 - a pair
        raise UsageError(f"{path}: pairs: each has two different nodes")
    if any(len(set(entry.nodes)) < 2 for entry in pairs.groups):  # noqa: PLR2004 - no group
        raise UsageError(f"{path}: groups: each has two or more nodes")
    return pairs


def _names(pairs: FleetPairs) -> set[str]:
    return {*pairs.nodes, *(name for entry in (*pairs.pairs, *pairs.groups) for name in entry.nodes)}
