from __future__ import annotations

from itertools import combinations, islice

import pytest

from kdoctor_target.training.round_robin import tournament


@pytest.mark.parametrize("players", range(1, 17))
def test_everybody_meets_everybody_once(players: int) -> None:
    assert sorted(tournament(players)) == list(combinations(range(players), 2))


@pytest.mark.parametrize("players", range(2, 17))
def test_nobody_plays_twice_before_the_round_is_over(players: int) -> None:
    matches, games = tournament(players), players // 2
    while this_round := [player for pair in islice(matches, games) for player in pair]:
        assert len(set(this_round)) == 2 * games
