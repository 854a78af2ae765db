"""Who trains with whom next, and what follows from the results. Pure.

Two rounds usually suffice. First, all nodes are paired at random. Then each suspect, which is a node that has trained
with no other node yet, is paired with a node that has proved itself. A suspect that fails with a proven node gets a
second proven node, because the first may be the other end of a bad link.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from kdoctor.records import record
from kdoctor_fleet.facts import BadLink, BadNode, PairTests

Pair = tuple[str, str]
Group = tuple[str, ...]

_WITNESSES = 2
"""Proven nodes that a node must fail with, if there are as many."""
_FEWEST = 4
"""Pairs that must have been measured for a comparison of their speeds."""
_TO_SIGMA = 1.4826
_MOST_DEVIATIONS, _LEAST_SHARE = 3.5, 0.5


@record
class WorkerOutcome:
    """What one node said about a training."""

    node: str
    verdict: str
    """Of its report; empty if it sent none."""
    problem: str = ""
    """What is wrong, or why it sent no report; empty if it trained."""
    hung: bool = False
    """Whether it passed its time limit."""
    phase: str | None = None
    """The phase in which it ended, if it did not finish."""
    stacks: str | None = None
    """Python stacks of all threads, if it hung or crashed."""
    gbs: float | None = None
    """GB/s that its all-reduce sent from each replica."""
    seconds: float = 0.0


@record
class Trial:
    """A training over some nodes."""

    nodes: Group
    outcome: Literal["trained", "failed", "untested"]
    """``untested``: it says nothing about the nodes, because a port was in use or a worker was inconclusive."""
    problem: str = ""
    """Why it failed, or was not a test."""
    hung: bool = False
    """Whether every worker that failed waited until its time limit."""
    gbs: float | None = None
    """The lowest speed of its workers."""
    workers: tuple[WorkerOutcome, ...] = ()


def circle(nodes: Sequence[str]) -> list[list[Pair]]:
    """Every pair once, in n-1 rounds of n/2 pairs, of which a node has at most one (the circle method)."""
    seats: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    rounds = []
    for _ in range(len(seats) - 1):
        facing = zip(seats[: len(seats) // 2], reversed(seats), strict=False)  # the first half meets the last
        rounds.append([(one, other) for one, other in facing if one is not None and other is not None])
        seats.insert(1, seats.pop())
    return rounds


def next_pairs(order: Sequence[str], trials: Sequence[Trial]) -> list[Pair]:
    """The pairs that train next, all at once; none if everything is known that pairs can show.

    Args:
        order: the nodes in a random order.
        trials: what was tested.
    """
    if not trials:
        return circle(order)[0] if len(order) > 1 else []
    tried = {frozenset(trial.nodes) for trial in trials}
    proven = proven_nodes(trials)
    if not proven:
        for pairs in circle(order):
            left = [pair for pair in pairs if frozenset(pair) not in tried]
            if left:
                return left
        return []
    uses = Counter(name for trial in trials for name in trial.nodes)
    failures = Counter(name for trial in trials if trial.outcome == "failed" for name in trial.nodes)
    helpers = sorted((name for name in order if name in proven), key=lambda name: (failures[name] > 0, uses[name]))
    found = []
    for suspect in _suspects(order, trials, proven):
        helper = next((name for name in helpers if frozenset((suspect, name)) not in tried), None)
        if helper is not None:
            found.append((suspect, helper))
            helpers.remove(helper)
    return found


def _suspects(order: Sequence[str], trials: Iterable[Trial], proven: Iterable[str]) -> Iterator[str]:
    """Nodes that have trained with no other node, and have not failed with enough proven nodes."""
    known = set(proven)
    against = _witnesses(trials, known)
    for name in order:
        if name not in known and len(against.get(name, ())) < _WITNESSES:
            yield name


def proven_nodes(trials: Iterable[Trial]) -> set[str]:
    """The nodes that have trained with another one."""
    return {name for trial in trials if trial.outcome == "trained" for name in trial.nodes}


def _witnesses(trials: Iterable[Trial], proven: set[str]) -> dict[str, set[str]]:
    """Nodes that have proved nothing, to the proven nodes that they failed with."""
    found: dict[str, set[str]] = {}
    for trial in trials:
        if trial.outcome == "failed":
            one, other = trial.nodes
            for name, partner in ((one, other), (other, one)):
                if name not in proven and partner in proven:
                    found.setdefault(name, set()).add(partner)
    return found


def conclude(nodes: Sequence[str], trials: Sequence[Trial]) -> PairTests:
    """Which nodes and links are bad.

    A node is bad if it trains with no other node and fails with a node that has proved itself. A link is bad if a pair
    fails although both nodes have proved themselves.
    """
    proven = proven_nodes(trials)
    bad: dict[str, BadNode] = {}
    undecided: dict[str, str] = {}
    for trial in trials:
        for name, partner in zip(trial.nodes, reversed(trial.nodes), strict=True):
            if name in proven:
                continue
            if trial.outcome == "failed" and partner in proven:
                bad.setdefault(name, BadNode(name=name, partner=partner, problem=trial.problem))
            else:
                undecided.setdefault(name, f"with {partner}: {trial.problem}")
    undecided = {name: why for name, why in undecided.items() if name not in bad}
    undecided |= {name: "was not paired" for name in nodes if name not in proven | bad.keys() | undecided.keys()}
    failed = [trial for trial in trials if trial.outcome == "failed"]
    speeds = [trial.gbs for trial in trials if trial.gbs is not None]
    return PairTests(
        nodes=tuple(sorted(nodes)),
        proven=tuple(sorted(proven)),
        pairs=len(trials),
        failed=len(failed),
        bad=tuple(bad.values()),
        links=tuple(_links([trial for trial in failed if proven.issuperset(trial.nodes)])),
        undecided=undecided,
        gbs=statistics.median(speeds) if speeds else None,
    )


def _links(trials: Sequence[Trial]) -> Iterator[BadLink]:
    """The bad links. Always the node with the most of them is left out, and of the rest the next one."""
    left, left_out = list(trials), list[str]()
    while left:
        worst = Counter(name for trial in left for name in trial.nodes).most_common(1)[0][0]
        left_out.append(worst)
        left = [trial for trial in left if worst not in trial.nodes]
    for trial in trials:
        one, other = trial.nodes
        worst = next(name for name in left_out if name in trial.nodes)
        yield BadLink(nodes=(one, other), leave_out=worst, problem=trial.problem)


def with_slow_pairs(trials: Sequence[Trial]) -> list[Trial]:
    """The trials, in which those that are much slower than their peers have failed.

    A pair is slow if its all-reduce is below the median of all pairs by 3.5 robust standard deviations (1.4826 times
    the median absolute deviation) and below half of the median. At least four pairs must have been measured.
    """
    speeds = [trial.gbs for trial in trials if trial.gbs is not None]
    if len(speeds) < _FEWEST:
        return list(trials)
    middle = statistics.median(speeds)
    sigma = _TO_SIGMA * statistics.median(abs(speed - middle) for speed in speeds)
    limit = min(middle - _MOST_DEVIATIONS * sigma, middle * _LEAST_SHARE)
    return [
        replace(
            trial,
            outcome="failed",
            problem=f"all-reduce at {trial.gbs:.2g} GB/s, the median of all pairs is {middle:.2g} GB/s",
        )
        if trial.gbs is not None and trial.gbs < limit
        else trial
        for trial in trials
    ]


def next_groups(nodes: Sequence[str], trials: Sequence[Trial]) -> list[Group]:
    """What trains next where pairs are well: all nodes together, and the halves of a group that hangs.

    Args:
        nodes: those that are good in pairs.
        trials: of more than two nodes, and of halves.
    """
    if len(nodes) < 3:  # noqa: PLR2004 - two nodes are a pair
        return []
    if not trials:
        return [tuple(nodes)]
    hanging = smallest_failing(trials)
    if hanging is None or not hanging.hung:
        return []
    middle = (len(hanging.nodes) + 1) // 2
    tried = {trial.nodes for trial in trials}
    halves = (hanging.nodes[:middle], hanging.nodes[middle:])
    return [half for half in halves if len(half) > 1 and half not in tried]


def smallest_failing(trials: Iterable[Trial]) -> Trial | None:
    """The smallest group that failed; of several, the first."""
    failed = [trial for trial in trials if trial.outcome == "failed"]
    return min(failed, key=lambda trial: len(trial.nodes)) if failed else None
