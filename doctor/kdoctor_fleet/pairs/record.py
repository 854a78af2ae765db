"""Two rounds of pairs or every pair, then all good nodes together; and the record, next to the reports of the nodes."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from kdoctor.documents import Document
from kdoctor.errors import UsageError
from kdoctor.output import write_atomically
from kdoctor.version import __version__
from kdoctor_fleet.facts import PairTests, Together
from kdoctor_fleet.names import MOST_NODES
from kdoctor_fleet.pairs import schedule
from kdoctor_fleet.pairs.run import Runner
from kdoctor_fleet.run_record import read_named

FILE = "fleet-pairs.json"


class FleetPairs(Document):
    """Trainings over several nodes: in pairs, and of all nodes together."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    schema_: Annotated[Literal["kdoctor/fleet-pairs/v1"], Field(alias="schema")] = "kdoctor/fleet-pairs/v1"
    kdoctor: str = __version__
    """Version of kdoctor."""
    nodes: Annotated[tuple[str, ...], Field(max_length=MOST_NODES)]
    """In the order of the first round."""
    started_at: str
    """UTC, ISO 8601."""
    full_matrix: bool
    """Whether every pair was to be tested."""
    interrupted: bool = False
    pairs: tuple[schedule.Trial, ...] = ()
    groups: tuple[schedule.Trial, ...] = ()
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
    if not path.is_file():
        return None
    pairs = read_named(path, FleetPairs, _names)
    if any(len(entry.nodes) != 2 or len(set(entry.nodes)) != 2 for entry in pairs.pairs):  # noqa: PLR2004 - a pair
        raise UsageError(f"{path}: pairs: each has two different nodes")
    if any(len(set(entry.nodes)) < 2 for entry in pairs.groups):  # noqa: PLR2004 - no group
        raise UsageError(f"{path}: groups: each has two or more nodes")
    return pairs


def _names(pairs: FleetPairs) -> set[str]:
    return {*pairs.nodes, *(name for entry in (*pairs.pairs, *pairs.groups) for name in entry.nodes)}


Keep = Callable[[FleetPairs], None]
"""Stores the record after each step."""


def run_pairs(record: FleetPairs, runner: Runner, keep: Keep) -> FleetPairs:
    """Train on the nodes of a record, which is empty, until pairs and groups show no more."""
    rounds = iter(schedule.circle(record.nodes)) if record.full_matrix else None
    while (
        pairs := next(rounds, [])
        if rounds
        else schedule.next_pairs(record.nodes, schedule.with_slow_pairs(record.pairs))
    ):
        for entry in runner.run(pairs):
            record = record.model_copy(update={"pairs": (*record.pairs, entry)})
        keep(record)
    good = good_nodes(record)
    while groups := schedule.next_groups(good, record.groups):
        for entry in runner.run(groups):
            record = record.model_copy(update={"groups": (*record.groups, entry)})
        keep(record)
    return record


def shuffled(nodes: Sequence[str]) -> tuple[str, ...]:
    """The nodes in a random order."""
    return tuple(random.sample(list(nodes), len(nodes)))


def good_nodes(record: FleetPairs) -> list[str]:
    """The nodes that proved themselves, without one node of each bad link, in order of name."""
    found = pair_tests(record)
    return sorted(set(found.proven) - {link.leave_out for link in found.links})


def pair_tests(record: FleetPairs) -> PairTests:
    """What the checks of the fleet judge."""
    found = schedule.conclude(record.nodes, schedule.with_slow_pairs(record.pairs))
    return replace(found, together=_together(record.groups), interrupted=record.interrupted)


def _together(groups: Sequence[schedule.Trial]) -> Together | None:
    if not groups:
        return None
    smallest = schedule.smallest_failing(groups)
    problem = smallest.problem if smallest else groups[0].problem
    return Together(
        nodes=groups[0].nodes,
        outcome=groups[0].outcome,
        problem=problem,
        smallest=smallest.nodes if smallest else (),
        trained=tuple(trial.nodes for trial in groups[1:] if trial.outcome == "trained"),
    )
