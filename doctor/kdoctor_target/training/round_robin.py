"""The order in which everybody meets everybody."""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple


def tournament(players: int) -> Iterator[Tuple[int, int]]:
    """Every pair once, round by round; in a round nobody plays twice (the circle method)."""
    seats: List[Optional[int]] = [*range(players), *([None] if players % 2 else [])]
    for _ in range(len(seats) - 1):
        for one, other in zip(seats[: len(seats) // 2], reversed(seats)):  # noqa: B905 - the first half meets the last
            if one is not None and other is not None:
                yield min(one, other), max(one, other)
        seats.insert(1, seats.pop())
