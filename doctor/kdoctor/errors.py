"""Errors that the user can fix. They are shown without a traceback."""

import errno
import os
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from posixpath import basename
from traceback import walk_tb
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


_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)


def is_exhausted(error: BaseException) -> bool:
    """Whether a limit of this process or of the machine was reached, so that nothing can be said about the job."""
    if isinstance(error, RuntimeError):
        return "can't start new thread" in str(error)
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _EXHAUSTED)


_NOT_A_PLUGIN = ("kdoctor", "importlib")


def fault_of_plugin(error: BaseException) -> str:
    """The type and the message of what a plugin raised, in one line of at most 300 characters, and where.

    Raises:
        BaseException: the error itself, if the system refused resources. It says nothing about the plugin.
    """
    if is_exhausted(error):
        raise error
    line = next((line for package, line in reversed(_places(error)) if package not in _NOT_A_PLUGIN), "")
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300] + (f" ({line})" if line else "")


def raised_in(error: BaseException, packages: Collection[str]) -> tuple[str, str]:
    """The last package of these whose code an error came through, and the line there: ``scratch.py:41``."""
    return next((place for place in reversed(_places(error)) if place[0] in packages), ("", ""))


def _places(error: BaseException) -> list[tuple[str, str]]:
    """The package and the line of each frame that an error came through."""
    return [
        (str(frame.f_globals.get("__name__", "")).partition(".")[0], f"{basename(frame.f_code.co_filename)}:{line}")
        for frame, line in walk_tb(error.__traceback__)
    ]


def described(error: BaseException, code: object) -> str:
    """The type and the message of an error, and the line in the package of the code that was called."""
    package = str(getattr(code, "__module__", "")).partition(".")[0]
    _, line = raised_in(error, [package])
    return f"{type(error).__name__}: {error}" + (f" ({line})" if line else "")


_BEGINNING = 4
"""Letters from which on a word is taken for the beginning of a name."""


def near_miss(word: str, known: Iterable[str]) -> str | None:
    """The most similar known word, or None. Also by its beginning or last part: ``free`` is near ``gpu.free``."""
    choices = sorted(set(known))
    begun = [one for one in choices if len(word) >= _BEGINNING and (one.startswith(word) or f".{word}" in one)]
    begun.sort(key=len)
    close = ("." in word and begun) or get_close_matches(word, choices, n=1, cutoff=0.85) or begun
    close = close or get_close_matches(word, choices, n=1, cutoff=0.6)
    if close:
        return close[0]
    by_slug = {choice.rpartition(".")[2]: choice for choice in choices}
    close = get_close_matches(word.rpartition(".")[2], by_slug, n=1, cutoff=0.75)
    return by_slug[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?``, or an empty string."""
    meant = near_miss(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def about_missing_file(path: Path, *endings: str) -> str:
    """What to add to "no such file": ``; did you mean 'x'?`` by what is next to it, or where it was searched.

    The files of a folder share their endings, so only the part before it is compared: ``jbo.yaml`` is near
    ``job.yaml``, but ``a.yaml`` is not near ``b.yaml``. Of two with the same beginning, the more similar one counts.
    """
    try:
        known = [other.name for other in path.parent.iterdir() if other.name.endswith(endings or ("",))]
    except (OSError, ValueError):
        return "" if os.path.exists(path.parent) else f"; the folder {path.parent} does not exist"  # noqa: PTH110
    known.sort(key=lambda other: (SequenceMatcher(None, path.name, other).ratio(), other))
    stem, *_ = path.name.lower().lstrip(".").partition(".")
    stems = {other.lower().lstrip(".").partition(".")[0]: other for other in known}
    close = get_close_matches(stem, stems, n=1, cutoff=0.66)  # two letters of three
    if close:
        return f"; did you mean {str(path.with_name(stems[close[0]]))!r}?"
    return "" if path.is_absolute() else f" in {path.parent.absolute()}"


def one_of(option: str, word: str, known: Sequence[Word]) -> Word:
    """The value of an option, if it is a known word.

    Raises:
        UsageError: it is not.
    """
    for item in known:
        if item == word:
            return item
    raise UsageError(f"{option} {word}: expected one of {', '.join(known)}{did_you_mean(word, known)}")
