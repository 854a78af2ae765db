"""Counts, groups, and shortened lists for sentences."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def some(names: Sequence[str], most: int = 3) -> str:
    """The first names and how many more: ``a, b, c and 4 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted(number: int | None, word: str, words: str | None = None) -> str:
    """``1 file``, ``2 files``, ``an unknown number of files``. ``words`` is the plural, if not the word and an s."""
    if number is None:
        return f"an unknown number of {words or word + 's'}"
    return f"{number} {word}" if number == 1 else f"{number} {words or word + 's'}"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in ascending order, with runs shortened: ``0-3, 5``."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def grouped(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """The second items by the first, both in order."""
    found: dict[Key, list[Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found
