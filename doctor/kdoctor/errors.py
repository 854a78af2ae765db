"""Errors that the user can fix. They are shown without a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

Word = TypeVar("Word", bound=str)


class UsageError(Exception):
    """A usage error or broken input; exit code 2."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        """How to fix it."""

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


def near_miss(word: str, known: Iterable[str]) -> str | None:
    """The most similar known word, or None. Words are also compared by their last part: ``free`` with ``gpu.free``."""
    choices = sorted(set(known))
    close = get_close_matches(word, choices, n=1, cutoff=0.6)
    if close:
        return close[0]
    by_slug = {choice.rpartition(".")[2]: choice for choice in choices}
    close = get_close_matches(word.rpartition(".")[2], by_slug, n=1, cutoff=0.75)
    return by_slug[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?``, or an empty string."""
    meant = near_miss(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def did_you_mean_file(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for a file that does not exist, or an empty string.

    File names share endings, and folders hold many of them. Only the part before the suffix is compared, and it must be
    nearly equal: ``jbo.yaml`` with ``job.yaml``, but not ``nope.yaml`` with ``node.yaml``.
    """
    stem = name.partition(".")[0]
    stems = {other.partition(".")[0]: other for other in sorted(set(known), reverse=True)}
    close = get_close_matches(stem.lower(), [other.lower() for other in stems], n=1, cutoff=0.8)
    # Swapped letters of a short name are less alike than that.
    meant = [other for key, other in stems.items() if key.lower() in close or _is_swapped(stem, key)]
    return f"; did you mean {meant[0]!r}?" if meant else ""


def _is_swapped(one: str, other: str) -> bool:
    """Whether two names differ by two neighbouring letters that were swapped."""
    differing = [index for index, (first, second) in enumerate(zip(one, other, strict=False)) if first != second]
    if len(one) != len(other) or len(differing) != 2:  # noqa: PLR2004 - a swap differs in two places
        return False
    low, high = differing
    return high == low + 1 and one[low] == other[high] and one[high] == other[low]


def one_of(option: str, word: str, known: Sequence[Word]) -> Word:
    """The value of an option, if it is a known word.

    Raises:
        UsageError: it is not.
    """
    for item in known:
        if item == word:
            return item
    raise UsageError(f"{option} {word}: expected one of {', '.join(known)}{did_you_mean(word, known)}")
