from itertools import combinations, islice

import pytest

from kdoctor_target.training.round_robin import round_robin


@pytest.mark.parametrize("players", range(1, 17))
def test_every_pair_occurs_once(players: int) -> None:
    assert sorted(round_robin(players)) == list(combinations(range(players), 2))


@pytest.mark.parametrize("players", range(2, 17))
def test_no_number_repeats_within_a_round(players: int) -> None:
    matches, games = round_robin(players), players // 2
    while this_round := [player for pair in islice(matches, games) for player in pair]:
        assert len(set(this_round)) == 2 * games
