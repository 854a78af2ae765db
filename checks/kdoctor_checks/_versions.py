"""Versions and specifiers (PEP 440), parsed without raising."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version


def parse_version(text: str | None) -> Version | None:
    """The version; None if it is missing or not valid."""
    try:
        return Version(text) if text is not None else None
    except InvalidVersion:
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


def numbers(text: str | None) -> tuple[int, ...] | None:
    """A version of a driver or of CUDA as integers (``580.65.06`` is 580, 65, 6); None if it is not one."""
    parts = (text or "").split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else None
