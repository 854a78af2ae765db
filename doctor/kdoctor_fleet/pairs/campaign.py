"""Two rounds of pairs or every pair, then all good nodes together. What was found becomes facts."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from kdoctor_fleet.facts import PairTests, Together
from kdoctor_fleet.pairs.record import FleetPairs
from kdoctor_fleet.pairs.run import Runner
from kdoctor_fleet.pairs.schedule import (
    Pair,
    Trial,
    circle,
    conclude,
    next_groups,
    next_pairs,
    smallest_failing,
    with_slow_pairs,
)

Keep = Callable[[FleetPairs], None]
"""Stores the record after each step."""


def run_pairs(record: FleetPairs, runner: Runner, keep: Keep) -> FleetPairs:
    """Train on the nodes of a record, which is empty, until pairs and groups show no more."""
    rounds = iter(circle(record.nodes)) if record.full_matrix else None
    while pairs := next(rounds, []) if rounds is not None else _next_pairs(record):
        for entry in runner.run(pairs):
            record = record.model_copy(update={"pairs": (*record.pairs, entry)})
        keep(record)
    good = good_nodes(record)
    while groups := next_groups(good, record.groups):
        for entry in runner.run(groups):
            record = record.model_copy(update={"groups": (*record.groups, entry)})
        keep(record)
    return record


def shuffled(nodes: Sequence[str]) -> tuple[str, ...]:
    """The nodes in a random order."""
    return tuple(random.sample(list(nodes), len(nodes)))


def _next_pairs(record: FleetPairs) -> list[Pair]:
    return next_pairs(record.nodes, with_slow_pairs(record.pairs))


def good_nodes(record: FleetPairs) -> list[str]:
    """The nodes that proved themselves, without one node of each bad link, in order of name."""
    found = pair_tests(record)
    return sorted(set(found.proven) - {link.leave_out for link in found.links})


def pair_tests(record: FleetPairs) -> PairTests:
    """What the checks of the fleet judge."""
    found = conclude(record.nodes, with_slow_pairs(record.pairs))
    return replace(found, together=_together(record.groups), interrupted=record.interrupted)


def _together(groups: Sequence[Trial]) -> Together | None:
    if not groups:
        return None
    smallest = smallest_failing(groups)
    problem = smallest.problem if smallest else groups[0].problem
    return Together(
        nodes=groups[0].nodes,
        outcome=groups[0].outcome,
        problem=problem,
        smallest=smallest.nodes if smallest else (),
        trained=tuple(trial.nodes for trial in groups[1:] if trial.outcome == "trained"),
    )
