"""Two rounds of pairs or every pair, then all good nodes together. What was found becomes facts."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence

from kdoctor_fleet.facts.fleet import BadLink, BadNode, PairTests, Together
from kdoctor_fleet.pairs.record import FleetPairs, TrialEntry
from kdoctor_fleet.pairs.run import Runner
from kdoctor_fleet.pairs.schedule import (
    Pair,
    circle,
    conclude,
    next_groups,
    next_pairs,
    proven_nodes,
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
    while groups := next_groups(good, [entry.trial for entry in record.groups]):
        for entry in runner.run(groups):
            record = record.model_copy(update={"groups": (*record.groups, entry)})
        keep(record)
    return record


def shuffled(nodes: Sequence[str]) -> tuple[str, ...]:
    """The nodes in a random order."""
    return tuple(random.sample(list(nodes), len(nodes)))


def _next_pairs(record: FleetPairs) -> list[Pair]:
    return next_pairs(record.nodes, with_slow_pairs([entry.trial for entry in record.pairs]))


def good_nodes(record: FleetPairs) -> list[str]:
    """The nodes that proved themselves, without one node of each bad link, in order of name."""
    trials = with_slow_pairs([entry.trial for entry in record.pairs])
    left_out = conclude(record.nodes, trials).leave_out()
    return sorted(proven_nodes(trials) - left_out.keys())


def pair_tests(record: FleetPairs) -> PairTests:
    """What the checks of the fleet judge."""
    trials = with_slow_pairs([entry.trial for entry in record.pairs])
    found = conclude(record.nodes, trials)
    speeds = [trial.gbs for trial in trials if trial.gbs is not None]
    leave_out = found.leave_out()
    return PairTests(
        nodes=tuple(sorted(record.nodes)),
        proven=tuple(sorted(proven_nodes(trials))),
        pairs=len(trials),
        failed=sum(trial.outcome == "failed" for trial in trials),
        bad=tuple(BadNode(name=name, partner=by, problem=why) for name, (by, why) in found.bad.items()),
        links=tuple(
            BadLink(
                nodes=(link.nodes[0], link.nodes[1]),
                leave_out=next(name for name in link.nodes if name in leave_out),
                problem=link.problem,
            )
            for link in found.links
        ),
        undecided=dict(found.undecided),
        together=_together(record.groups),
        gbs=statistics.median(speeds) if speeds else None,
        interrupted=record.interrupted,
    )


def _together(groups: Sequence[TrialEntry]) -> Together | None:
    if not groups:
        return None
    smallest = smallest_failing(entry.trial for entry in groups)
    problem = smallest.problem if smallest else groups[0].problem
    return Together(
        nodes=groups[0].nodes,
        outcome=groups[0].outcome,
        problem=problem,
        smallest=smallest.nodes if smallest else (),
        trained=tuple(entry.nodes for entry in groups[1:] if entry.outcome == "trained"),
    )
