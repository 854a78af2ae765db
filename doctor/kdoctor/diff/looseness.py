"""Decides which of two values is looser: by the name of a parameter, or by the versions that it allows."""

import re
from typing import Any, Literal

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from kdoctor.diff.model import Kind

Looser = Literal["greater", "smaller", "more", "farther", "true"]

DIRECTIONS: tuple[tuple[str, Looser], ...] = (
    (r"(^|_)max(imum)?(_|$)|(^|_)(at_)?most(_|$)|(^|_)limit(_|$)|(^|_)tolerance(_|$)|(^|_)slack(_|$)", "greater"),
    (r"(^|_)min(imum)?(_|$)|(^|_)(at_)?least(_|$)|(^|_)floor(_|$)", "smaller"),
    (r"^allow(ed)?(_|$)|^ignore(d)?(_|$)|^tolerate(_|$)|^accept(ed)?(_|$)|^refusals$", "more"),
    (r"^farthest$", "farther"),
)
"""Names of parameters to what is looser: ``max_...``, ``least_...``, ``..._tolerance``, ``allow_...``. Other names have
no known direction: their changes may loosen, so they do."""

_DISTANCES = ("internal", "PIX", "PXB", "PHB", "NODE", "SYS")


def direction_of(parameter: str) -> Looser | None:
    """What is looser for a parameter of that name; None if not known."""
    return next((looser for pattern, looser in DIRECTIONS if re.search(pattern, parameter)), None)


def compare_numbers(old: Any, new: Any, looser: Looser) -> Kind:
    """The kind of a change of a value with that direction."""
    if looser == "farther":
        if old not in _DISTANCES or new not in _DISTANCES:
            return "moved"
        return "loosened" if _DISTANCES.index(new) > _DISTANCES.index(old) else "tightened"
    if isinstance(old, tuple | list | set | frozenset) and isinstance(new, tuple | list | set | frozenset):
        return _compare_sets({*map(str, old)}, {*map(str, new)}) if looser == "more" else "moved"
    if not isinstance(old, int | float) or not isinstance(new, int | float):
        return "moved"
    is_greater = new > old
    return "loosened" if is_greater == (looser != "smaller") else "tightened"


def _compare_sets(old: set[str], new: set[str]) -> Kind:
    if old == new:
        return "cosmetic"
    if old < new:
        return "loosened"
    return "tightened" if new < old else "moved"


def compare_specifiers(old: str, new: str) -> Kind:
    """The kind of a change of a version specifier (PEP 440), by the versions that each allows.

    They can only differ near the versions that they name, so those and their neighbours are tried.
    """
    one, two = SpecifierSet(old), SpecifierSet(new)
    if one == two:
        return "cosmetic"
    tried = _versions_to_try(f"{old},{new}")
    allowed = [
        {version for version in tried if specifier.contains(version, prereleases=True)} for specifier in (one, two)
    ]
    return _compare_sets({*map(str, allowed[0])}, {*map(str, allowed[1])})


def _versions_to_try(text: str) -> set[Version]:
    found: set[Version] = {Version("0"), Version("99999")}
    for word in re.findall(r"[\w.!+*-]+", text):
        try:
            version = Version(word.removesuffix(".*"))
        except ValueError:  # not a version, or one of thousands of digits
            continue
        found |= _around(version)
    return found


def _around(version: Version) -> set[Version]:
    """A version and its neighbours: the next pre-, post- and development release, and the next one at each position."""
    base = version.base_version
    found = {version, Version(f"{base}.dev0"), Version(f"{base}a0"), Version(f"{base}.post1")}
    if version.dev is not None:
        found.add(Version(re.sub(r"dev\d+$", f"dev{version.dev + 1}", version.public)))
    if version.pre is not None:
        kind, number = version.pre
        found.add(Version(f"{base}{kind}{number + 1}"))
    if version.post is not None:
        found.add(Version(f"{base}.post{version.post + 1}"))
    epoch = f"{version.epoch}!" if version.epoch else ""
    for place, number in enumerate(padded := (*version.release, 0)):
        for tried in (number, number + 1):
            parts = ".".join(map(str, (*padded[:place], tried)))
            found |= {Version(epoch + parts), Version(f"{epoch}{parts}.999")}
    return found
