"""The fields of a mapping in a document, read strictly; what is wrong with them is noted with its path."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from packaging.requirements import InvalidRequirement
from packaging.specifiers import InvalidSpecifier
from packaging.version import InvalidVersion

from kdoctor.errors import did_you_mean

Path = tuple[str | int, ...]


@dataclass(kw_only=True)
class Mistakes:
    """What is wrong with a document, by the path of the value."""

    found: list[tuple[Path, str, bool]] = field(default_factory=list)
    """Path, message, and whether it is about the key rather than the value."""

    def add(self, path: Path, message: str, *, at_key: bool = False) -> None:
        """Note one."""
        self.found.append((path, message, at_key))


class Fields:
    """A mapping of the document, of which every key must be known."""

    def __init__(self, value: Any, path: Path, mistakes: Mistakes) -> None:
        self.path, self.mistakes = path, mistakes
        self._asked: list[str] = []
        self.data: dict[str, Any] = {}
        if isinstance(value, dict):
            self.data = value
        else:
            self.wrong(None, f"expected a mapping, not {kind_of(value)}")

    def wrong(self, key: str | None, message: str) -> None:
        """Note a mistake, of the mapping or of one key of it."""
        self.mistakes.add(self.path if key is None else (*self.path, key), message)

    def take(self, key: str, *, needed: bool = True) -> Any:
        """A key's value as it stands; None, and a mistake, where it is needed and missing."""
        self._asked.append(key)
        value = self.data.get(key)
        if value is None and needed:
            self.wrong(key if key in self.data else None, f"{key!r} is {'empty' if key in self.data else 'missing'}")
        return value

    def has(self, key: str) -> bool:
        """Whether the key stands in the document."""
        return key in self.data

    def close(self) -> None:
        """Say which keys nobody asked for."""
        for key in self.data:
            if key not in self._asked:
                message = f"{key!r} is no key here{did_you_mean(str(key), self._asked)}"
                self.mistakes.add((*self.path, key), message, at_key=True)

    def text(self, key: str, check: Callable[[str], object] | None = None) -> str:
        """Text that must be there and pass the check; empty, and a mistake, otherwise."""
        return self.maybe_text(key, check, needed=True) or ""

    def maybe_text(self, key: str, check: Callable[[str], object] | None = None, *, needed: bool = False) -> str | None:
        """Text that passes the check, or None."""
        value = self.take(key, needed=needed)
        if value is None:
            return None
        return _text(value, key, (*self.path, key), self.mistakes, check)

    def texts(self, key: str, check: Callable[[str], object] | None = None, *, needed: bool = True) -> tuple[str, ...]:
        """A list of texts, or one alone."""
        value = self.take(key, needed=needed)
        items = [value] if isinstance(value, str) else value
        if items is None:
            return ()
        if not isinstance(items, list):
            self.wrong(key, f"{key!r}: expected a list, not {kind_of(value)}")
            return ()
        path = (*self.path, key)
        read = (_text(item, key, (*path, at), self.mistakes, check) for at, item in enumerate(items))
        return tuple(item for item in read if item is not None)

    def pairs(self, key: str, check: Callable[[str], object] | None = None, *, needed: bool = True) -> dict[str, str]:
        """A mapping of names to texts."""
        value = self.take(key, needed=needed)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.wrong(key, f"{key!r}: expected a mapping, not {kind_of(value)}")
            return {}
        path = (*self.path, key)
        return {name: _text(item, name, (*path, name), self.mistakes, check) or "" for name, item in value.items()}

    def number(self, key: str, *, needed: bool = True) -> int | None:
        """A whole number above 0."""
        value = self.take(key, needed=needed)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value <= 0):
            self.wrong(key, f"{key!r}: expected a whole number above 0, not {kind_of(value)}")
            return None
        return value

    def architectures(self, key: str) -> tuple[int, ...]:
        """Rising numbers such as 80."""
        value = self.take(key)
        fits = isinstance(value, list) and all(isinstance(item, int) and 10 <= item < 1000 for item in value)  # noqa: PLR2004
        if value is not None and not (fits and value == sorted(set(value))):
            self.wrong(key, f"{key!r}: expected rising architectures such as [70, 80, 90], not {kind_of(value)}")
            return ()
        return tuple(value or ())

    def choice(self, key: str, known: tuple[str, ...], *, needed: bool = True) -> Any:
        """One of the known words."""
        value = self.maybe_text(key, needed=needed)
        if value and value not in known:
            expected = f"expected one of {', '.join(known)}{did_you_mean(value, known)}"
            self.wrong(key, f"{key!r} is {value!r}; {expected}")
        return value


def _text(value: Any, name: str, path: Path, mistakes: Mistakes, check: Callable[[str], object] | None) -> str | None:
    if not isinstance(value, str):
        quotes = ": put it in quotes" if isinstance(value, int | float | dt.date) else ""
        mistakes.add(path, f"{name!r}: expected text, not {kind_of(value)}{quotes}")
        return None
    if not value.strip():
        mistakes.add(path, f"{name!r} is empty")
        return None
    if check is not None:
        try:
            check(value)
        except (ValueError, InvalidRequirement) as error:
            mistakes.add(path, f"{name!r} is {value!r}: {_reason(error)}")
            return None
    return value


def _reason(error: Exception) -> str:
    reasons: tuple[tuple[type[Exception], str], ...] = (
        (InvalidSpecifier, "that is no version specifier (PEP 440), such as '>=3.10,<3.14'"),
        (InvalidVersion, "that is no version (PEP 440), such as '2.21.0'"),
        (InvalidRequirement, "that is no requirement (PEP 508), such as 'numpy<2'"),
    )
    return next((words for kind, words in reasons if isinstance(error, kind)), str(error))


def kind_of(value: Any) -> str:
    """What a value is, in words for its writer."""
    kinds: tuple[tuple[type, str], ...] = (
        (bool, f"the truth value {str(value).lower()}"),
        (int, f"the number {value}"),
        (float, f"the number {value}"),
        (str, f"the text {value!r:.60}"),
        (list, f"the list {value!r:.60}"),
        (dict, "a mapping"),
        (dt.date, f"the date {value}"),
    )
    return next((words for kind, words in kinds if isinstance(value, kind)), "nothing" if value is None else "that")
