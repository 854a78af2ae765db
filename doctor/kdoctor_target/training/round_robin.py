"""The order in which every pair of replicas is tested."""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple


def round_robin(count: int) -> Iterator[Tuple[int, int]]:
    """Every pair of ``range(count)`` once, in rounds in which no number occurs twice (the circle method)."""
    seats: List[Optional[int]] = [*range(count), *([None] if count % 2 else [])]
    for _ in range(len(seats) - 1):
        for one, other in zip(seats[: len(seats) // 2], reversed(seats)):  # the first half meets the last
            if one is not None and other is not None:
                yield min(one, other), max(one, other)
        seats.insert(1, seats.pop())
