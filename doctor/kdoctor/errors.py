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


def one_of(option: str, word: str, known: Sequence[Word]) -> Word:
    """The value of an option, if it is a known word.

    Raises:
        UsageError: it is not.
    """
    for item in known:
        if item == word:
            return item
    raise UsageError(f"{option} {word}: expected one of {', '.join(known)}{did_you_mean(word, known)}")
