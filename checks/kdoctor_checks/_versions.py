"""Versions, specifiers (PEP 440) and short texts."""

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

MOST_CHARACTERS = 60
"""Of ``Finding.brief``."""


_MOST_DIGITS = 18
"""Of a number. Python refuses to read thousands of digits."""


def parse_version(text: str | None) -> Version | None:
    """The version; None if it is missing or not valid."""
    try:
        return Version(text) if text is not None else None
    except ValueError:  # not a version, or one of thousands of digits
        return None


def parse_specifiers(text: str) -> SpecifierSet | None:
    """The specifiers; None if they are not valid."""
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None


def meets(version: Version, specifiers: SpecifierSet) -> bool:
    """Whether the version meets the specifiers. Installed pre-releases count: the user chose them."""
    return specifiers.contains(version, prereleases=True)


def first_short(*texts: str) -> str:
    """The first text that is short enough to be the brief of a finding; the last one must be."""
    return next((text for text in texts if len(text) <= MOST_CHARACTERS), texts[-1])


def numbers(text: str | None) -> tuple[int, ...] | None:
    """A version of a driver or of CUDA as integers (``580.65.06`` is 580, 65, 6); None if it is not one."""
    parts = (text or "").split(".")
    valid = all(part.isascii() and part.isdecimal() and len(part) <= _MOST_DIGITS for part in parts)
    return tuple(int(part) for part in parts) if valid else None
