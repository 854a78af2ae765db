"""Versions and specifiers (PEP 440), read without raising."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version


def parse_version(text: str | None) -> Version | None:
    """The version, or None where there is none or it does not follow PEP 440."""
    try:
        return Version(text) if text is not None else None
    except InvalidVersion:
        return None


def parse_specifiers(text: str) -> SpecifierSet | None:
    """The specifiers, or None where they do not follow PEP 440."""
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None


def meets(version: Version, specifiers: SpecifierSet) -> bool:
    """Whether the version meets them. An installed pre-release counts: it was chosen knowingly."""
    return specifiers.contains(version, prereleases=True)


def numbers(text: str | None) -> tuple[int, ...] | None:
    """A driver's or CUDA's dotted version as integers (``580.65.06`` is 580, 65, 6), or None if it is none."""
    parts = (text or "").split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else None
