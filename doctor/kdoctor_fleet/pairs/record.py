"""The record of trainings over several nodes, next to the reports of the nodes."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from kdoctor.documents import Document
from kdoctor.errors import UsageError
from kdoctor.output import write_atomically
from kdoctor.version import __version__
from kdoctor_fleet.names import MOST_NODES
from kdoctor_fleet.pairs.schedule import Trial
from kdoctor_fleet.run_record import read_record

SCHEMA: Literal["kdoctor/fleet-pairs/v1"] = "kdoctor/fleet-pairs/v1"
FILE = "fleet-pairs.json"


class FleetPairs(Document):
    """Trainings over several nodes: in pairs, and of all nodes together."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    schema_: Annotated[Literal["kdoctor/fleet-pairs/v1"], Field(alias="schema")] = SCHEMA
    kdoctor: str = __version__
    """Version of kdoctor."""
    nodes: Annotated[tuple[str, ...], Field(max_length=MOST_NODES)]
    """In the order of the first round."""
    started_at: str
    """UTC, ISO 8601."""
    full_matrix: bool
    """Whether every pair was to be tested."""
    interrupted: bool = False
    pairs: tuple[Trial, ...] = ()
    groups: tuple[Trial, ...] = ()
    """All good nodes, and halves of what hangs."""


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
