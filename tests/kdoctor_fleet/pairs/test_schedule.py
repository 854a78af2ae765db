"""Constructed fleets with planted bad nodes and links: exactly those are named."""

import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.kdoctor_fleet.fleets import names_of
from kdoctor_fleet.facts import PairTests
from kdoctor_fleet.pairs.schedule import (
    Group,
    Trial,
    circle,
    conclude,
    next_groups,
    next_pairs,
    smallest_failing,
    with_slow_pairs,
)


def try_pairs(
    nodes: list[str], bad: Iterable[str] = (), links: Iterable[frozenset[str]] = (), seed: int = 0
) -> tuple[PairTests, int]:
    """What is concluded over a fleet in which these nodes and links do not work, and in how many rounds."""
    order = random.Random(seed).sample(nodes, len(nodes))  # noqa: S311 - a seed of a test
    broken, cut = set(bad), set(links)
    trials: list[Trial] = []
    rounds = 0
    while pairs := next_pairs(order, trials):
        busy = [name for pair in pairs for name in pair]
        assert len(busy) == len(set(busy)), "a node has two partners at once"
        rounds += 1
        for pair in pairs:
            fails = bool(broken & set(pair)) or frozenset(pair) in cut
            trials.append(Trial(nodes=pair, outcome="failed" if fails else "trained", problem="hangs" if fails else ""))
    return conclude(nodes, trials), rounds


def named(conclusion: PairTests) -> tuple[set[str], set[frozenset[str]]]:
    return {node.name for node in conclusion.bad}, {frozenset(link.nodes) for link in conclusion.links}


@pytest.mark.parametrize("number", [2, 3, 4, 5, 64, 1000])
def test_healthy_fleet_takes_one_round_or_two_for_an_odd_number(number: int) -> None:
    conclusion, rounds = try_pairs(names_of(number))
    assert named(conclusion) == (set(), set())
    assert not conclusion.undecided
    assert rounds == 1 + number % 2


@pytest.mark.parametrize("number", [3, 5, 7, 64, 65, 1000])
@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("seed", range(3))
def test_planted_bad_nodes_are_named_and_no_others(number: int, count: int, seed: int) -> None:
    nodes = names_of(number)
    bad = random.Random(seed).sample(nodes, min(count, (number - 1) // 2))  # noqa: S311
    conclusion, rounds = try_pairs(nodes, bad, seed=seed + 100)  # bad ones may meet
    assert named(conclusion) == (set(bad), set())
    assert not conclusion.undecided
    assert rounds <= (3 if number >= 64 else number)


@pytest.mark.parametrize("seed", range(20))
def test_bad_link_that_was_tried_is_named_and_its_nodes_are_not(seed: int) -> None:
    nodes = names_of(64)
    order = random.Random(seed).sample(nodes, len(nodes))  # noqa: S311
    link = frozenset(circle(order)[0][seed])
    conclusion, rounds = try_pairs(nodes, links=[link], seed=seed)
    assert named(conclusion) == (set(), {link})
    assert rounds == 2
    assert {found.leave_out for found in conclusion.links} < link


@given(st.integers(5, 40), st.integers(0, 10**6), st.integers(1, 4), st.integers(0, 2))
@settings(max_examples=100)
def test_bad_nodes_and_links_together(number: int, seed: int, bad_count: int, link_count: int) -> None:
    """Each node has at most one bad link, and most nodes are good. No good node is blamed, and no bad one is missed."""
    source, nodes = random.Random(seed), names_of(number)  # noqa: S311
    bad = source.sample(nodes, min(bad_count, max(0, (number - 2 * link_count) // 2 - 1)))
    good = [name for name in nodes if name not in bad]
    ends = source.sample(good, min(2 * link_count, len(good) // 2 * 2))
    links = {frozenset(ends[index : index + 2]) for index in range(0, len(ends), 2)}
    found_bad, found_links = named(try_pairs(nodes, bad, links, seed + 1)[0])
    assert found_bad == set(bad)
    assert found_links <= links  # those that were tried


def test_two_nodes_that_fail_blame_neither() -> None:
    conclusion, _ = try_pairs(names_of(2), bad=names_of(2)[:1])
    assert named(conclusion) == (set(), set())
    assert set(conclusion.undecided) == set(names_of(2))


def test_fleet_in_which_no_pair_trains_is_undecided_after_every_pair() -> None:
    conclusion, rounds = try_pairs(names_of(6), bad=names_of(6))
    assert set(conclusion.undecided) == set(names_of(6))
    assert rounds == 5


def test_third_node_proves_itself_with_either_of_a_bad_link() -> None:
    one, two, three = names_of(3)
    conclusion, _ = try_pairs([one, two, three], links=[frozenset((one, two))])
    assert not conclusion.bad
    assert not conclusion.undecided


@pytest.mark.parametrize("number", [2, 3, 4, 7, 64])
def test_matrix_has_every_pair_once_in_rounds_of_different_nodes(number: int) -> None:
    nodes = names_of(number)
    rounds = circle(nodes)
    assert len(rounds) == number - 1 + number % 2
    assert all(len({name for pair in pairs for name in pair}) == 2 * len(pairs) for pairs in rounds)
    assert len({frozenset(pair) for pairs in rounds for pair in pairs}) == number * (number - 1) // 2


@pytest.mark.parametrize("number", [3, 8, 33])
def test_matrix_names_every_planted_link_and_node(number: int) -> None:
    nodes = names_of(number)
    bad, cut = {nodes[-1]} if number > 3 else set(), {frozenset(nodes[:2])}
    trials = [
        Trial(nodes=pair, outcome="failed" if bad & set(pair) or frozenset(pair) in cut else "trained")
        for pairs in circle(nodes)
        for pair in pairs
    ]
    assert named(conclude(nodes, trials)) == (bad, cut)


def test_untested_pair_blames_no_node_and_its_nodes_are_paired_again() -> None:
    nodes = names_of(4)
    first = Trial(nodes=(nodes[0], nodes[1]), outcome="untested", problem="port 23000 is in use")
    trials = [first, Trial(nodes=(nodes[2], nodes[3]), outcome="trained")]
    assert {frozenset(pair) for pair in next_pairs(nodes, trials)} == {
        frozenset((nodes[0], nodes[2])),
        frozenset((nodes[1], nodes[3])),
    }
    assert set(conclude(nodes, trials).undecided) == set(nodes[:2])
    assert "port 23000" in conclude(nodes, trials).undecided[nodes[0]]


def test_node_with_most_bad_links_is_left_out() -> None:
    one, two, three, four = names_of(4)
    links = [Trial(nodes=pair, outcome="failed") for pair in ((one, two), (two, three), (three, four), (two, four))]
    trained = [Trial(nodes=pair, outcome="trained") for pair in ((one, four), (two, "e"), (three, "e"))]
    found = conclude([one, two, three, four, "e"], [*links, *trained]).links
    assert [link.leave_out for link in found] == [two, two, three, two]


def speeds(*gbs: float) -> list[Trial]:
    return [Trial(nodes=(f"a{index}", f"b{index}"), outcome="trained", gbs=speed) for index, speed in enumerate(gbs)]


def test_much_slower_pair_has_failed() -> None:
    judged = with_slow_pairs(speeds(10, 11, 10.5, 4.0, 9.8))
    assert [trial.outcome for trial in judged] == ["trained", "trained", "trained", "failed", "trained"]


@pytest.mark.parametrize("gbs", [(10, 11, 2), (10, 11, 10, 6), (2, 10, 4, 8, 1)])
def test_few_pairs_small_differences_and_wide_spreads_are_not_judged(gbs: tuple[float, ...]) -> None:
    assert all(trial.outcome == "trained" for trial in with_slow_pairs(speeds(*gbs)))


def together(nodes: list[str], hangs: Callable[[Group], bool]) -> list[Trial]:
    trials: list[Trial] = []
    while groups := next_groups(nodes, trials):
        for group in groups:
            failed = hangs(group)
            trials.append(Trial(nodes=group, outcome="failed" if failed else "trained", hung=failed))
    return trials


@pytest.mark.parametrize("number", [3, 4, 64, 1000])
def test_nodes_that_train_together_are_tried_once(number: int) -> None:
    assert [trial.nodes for trial in together(names_of(number), lambda group: False)] == [tuple(names_of(number))]


@pytest.mark.parametrize(("number", "limit"), [(64, 16), (64, 33), (1000, 125), (1000, 600)])
def test_bisection_finds_the_size_from_which_groups_hang(number: int, limit: int) -> None:
    trials = together(names_of(number), lambda group: len(group) > limit)
    smallest = smallest_failing(trials)
    assert smallest
    assert limit < len(smallest.nodes) <= max(2 * limit, limit + 1)
    assert len(trials) <= 1 + 2 * (number.bit_length())


def test_bisection_narrows_to_the_half_that_hangs() -> None:
    nodes = names_of(16)
    culprits = {nodes[5], nodes[6]}
    smallest = smallest_failing(together(nodes, lambda group: len(group) > 2 and culprits <= set(group)))
    assert smallest
    assert set(smallest.nodes) == set(nodes[4:8])


def test_error_is_not_bisected() -> None:
    nodes = names_of(8)
    assert next_groups(nodes, [Trial(nodes=tuple(nodes), outcome="failed", problem="ValueError")]) == []


def test_two_nodes_have_no_further_group() -> None:
    assert next_groups(names_of(2), []) == []
