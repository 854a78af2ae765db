"""One checklist over another (``extends``): what the upper one says replaces what it inherits, part by part."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from kdoctor.errors import did_you_mean
from kdoctor.facts import canonical_name
from kdoctor.yamldoc import Path, Problem, Source

KINDS = ("baseline", "edge-case", "failure-path")
"""The kinds of scenarios; a checklist has one of each, or says why not."""

_OWN = ("schema", "name", "version")
"""What every checklist says for itself, whatever it extends."""
_LONGEST = 60


@dataclass(frozen=True, kw_only=True)
class Override:
    """One thing that a checklist says otherwise than the checklist that it extends."""

    what: str
    """``checks.gpu.free.severity``, ``assumptions.gpus.count``, ``without.gpu.free``, ..."""
    old: str
    """What was inherited."""
    new: str
    """What stands now."""
    inherited_from: str
    """The file or shipped name that says ``old``."""


def lay_over(base: Source, over: Source) -> tuple[Source, list[Override]]:
    """The two as one, each value with its own file and place, and what the upper one replaced.

    Checks and scenarios are told apart by their ids, waivers by check and subject, packages by their normalised
    names; an entry's keys, and a check's parameters, are replaced one by one. A list of patterns is replaced whole.
    What is inherited and not wanted is named under ``without``, with the reason.
    """
    merger = _Merger(base, over)
    merger.run()
    return merger.merged, merger.overrides


def own_problems(over: Source) -> Iterator[Problem]:
    """What a checklist that extends another must still say for itself."""
    for key in _OWN:
        if key not in over.data:
            yield over.problem((), f"{key!r} is missing: a checklist that extends another still has its own")


class _Merger:
    def __init__(self, base: Source, over: Source) -> None:
        self._base = base
        self._over = over
        self.merged = Source(name=over.name, problems=[*base.problems, *over.problems])
        self.overrides: list[Override] = []

    def run(self) -> None:
        base, over = self._base.data, self._over.data
        self.merged.values[()] = self._over.values.get((), (1, 1))
        merged: dict[str, Any] = {}
        for key in [*over, *(key for key in base if key not in over)]:
            if key != "extends":
                merged[key] = self._section(key, base.get(key), over.get(key))
        self.merged.data = merged
        self._leave_out(merged)

    def _section(self, key: str, below: Any, above: Any) -> Any:
        path = (key,)
        if key not in self._over.data or (above is None and key in self._base.data):
            return self._graft(self._base, path, path)
        if isinstance(below, list) and isinstance(above, list) and key in _IDENTITIES:
            return self._entries(path, _IDENTITIES[key])
        if isinstance(below, dict) and isinstance(above, dict):
            return self._mapping(path, path, path)
        if key in self._base.data and key not in _OWN:
            self._note(path, below, above, self._base.file(path))
        return self._graft(self._over, path, path)

    def _entries(self, path: Path, identity: Callable[[Any], Hashable | None]) -> list[Any]:
        below, above = _at(self._base.data, path), _at(self._over.data, path)
        places = {identity(entry): index for index, entry in enumerate(above) if identity(entry) is not None}
        merged: list[Any] = []
        used: set[int] = set()
        for index, entry in enumerate(below):
            key, to = identity(entry), (*path, len(merged))
            upper = places.get(key) if key is not None else None
            if upper is None:
                merged.append(self._graft(self._base, (*path, index), to))
            else:
                used.add(upper)
                merged.append(self._mapping((*path, index), (*path, upper), to))
        for index in range(len(above)):
            if index not in used:
                merged.append(self._graft(self._over, (*path, index), (*path, len(merged))))
        self.merged.values[path] = self._over.values.get(path, (1, 1))
        self.merged.files[path] = self._over.file(path)
        return merged

    def _mapping(self, low: Path, high: Path, to: Path) -> dict[str, Any]:
        """Two mappings as one; mappings within them are merged, too."""
        below, above = _at(self._base.data, low), _at(self._over.data, high)
        self._place(self._over, high, to)
        same: Callable[[str], str] = canonical_name if to == ("assumptions", "packages") else str
        names = {same(key): key for key in above}
        merged: dict[str, Any] = {}
        for key, value in below.items():
            upper = names.pop(same(key), None)
            if upper is None and not _excluded(to, key, above):
                merged[key] = self._graft(self._base, (*low, key), (*to, key))
            elif upper is None:
                self._note((*to, key), value, None, self._base.file((*low, key)))
            elif isinstance(value, dict) and isinstance(above[upper], dict):
                merged[upper] = self._mapping((*low, key), (*high, upper), (*to, upper))
            else:
                self._note((*to, upper), value, above[upper], self._base.file((*low, key)))
                merged[upper] = self._graft(self._over, (*high, upper), (*to, upper))
        for key in names.values():
            merged[key] = self._graft(self._over, (*high, key), (*to, key))
        return merged

    def _leave_out(self, merged: dict[str, Any]) -> None:
        """Take out what is inherited and named under ``without``; forget reasons that hold no longer."""
        without, inherited = merged.get("without"), self._base.data.get("without")
        if not isinstance(without, dict):
            return
        stated = self._over.data.get("without")
        stated = stated if isinstance(stated, dict) else {}
        own = {key for section in ("checks", "scenarios") for key in _ids(self._over.data.get(section))}
        kinds = {str(entry.get("kind")) for entry in _dicts(self._over.data.get("scenarios"))}
        inherited = inherited if isinstance(inherited, dict) else {}
        for key in [key for key in inherited if key not in stated and key in own | kinds]:
            reason = without.pop(key)
            self._note(("without", key), reason, None, self._base.file(("without", key)))
        below = {key for section in ("checks", "scenarios") for key in _ids(self._base.data.get(section))}
        for key in [key for key in stated if key not in KINDS]:
            self._leave_out_one(key, merged, below, own)

    def _leave_out_one(self, key: str, merged: dict[str, Any], below: set[str], own: set[str]) -> None:
        path = ("without", key)
        if key in own:
            message = f"{key} is listed in this checklist and named under 'without': keep one"
            self.merged.problems.append(self.merged.problem(path, message, at_key=True))
            return
        if key not in below:
            message = f"nothing of the name {key!r} is inherited{did_you_mean(key, below)}"
            self.merged.problems.append(self.merged.problem(path, message, at_key=True))
            return
        for section in ("checks", "scenarios"):
            entries = merged.get(section)
            if isinstance(entries, list) and key in _ids(entries):
                index = next(number for number, entry in enumerate(entries) if _id(entry) == key)
                self._note((section, key), "listed", None, self.merged.file((section, index)))
                self._remove(section, index, entries)
        waivers = merged.get("waivers")
        for index in reversed(range(len(waivers) if isinstance(waivers, list) else 0)):
            if isinstance(waivers, list) and isinstance(waivers[index], dict) and waivers[index].get("check") == key:
                self._remove("waivers", index, waivers)

    def _remove(self, section: str, index: int, entries: list[Any]) -> None:
        """Take an entry out of a list, and move the places of those behind it."""
        del entries[index]
        for table in (self.merged.values, self.merged.keys, self.merged.texts, self.merged.files):
            moved: dict[Path, Any] = {}
            for path, place in list(table.items()):
                number = path[1] if len(path) > 1 and path[0] == section else None
                if isinstance(number, int) and number >= index:
                    del table[path]
                    if number > index:
                        to: Path = (section, number - 1, *path[2:])
                        moved[to] = place
            table.update(moved)

    def _graft(self, source: Source, at: Path, to: Path) -> Any:
        """Copy a value with its places."""
        self._place(source, at, to)
        value = _at(source.data, at)
        if isinstance(value, dict):
            return {key: self._graft(source, (*at, key), (*to, key)) for key in value}
        if isinstance(value, list):
            return [self._graft(source, (*at, index), (*to, index)) for index in range(len(value))]
        return value

    def _place(self, source: Source, at: Path, to: Path) -> None:
        if at in source.values:
            self.merged.values[to] = source.values[at]
        if at in source.keys:
            self.merged.keys[to] = source.keys[at]
        if at in source.texts:
            self.merged.texts[to] = source.texts[at]
        self.merged.files[to] = source.file(at)

    def _note(self, path: Path, old: Any, new: Any, file: str) -> None:
        if old != new:
            name = ".".join(self._step(path[: index + 1]) for index in range(len(path)))
            self.overrides.append(Override(what=name, old=shown(old), new=shown(new), inherited_from=file))

    def _step(self, path: Path) -> str:
        """A step of a path; an entry of a list by its id."""
        last = path[-1]
        if not isinstance(last, int):
            return last
        # Overridden entries keep the places that they have in the checklist below.
        entry = _at(self._base.data, path)
        return str(entry.get("id") or entry.get("check"))


def shown(value: Any) -> str:
    """A value in one short line."""
    if value is None:
        return "nothing"
    is_plain = isinstance(value, str | dt.date)
    text = str(value) if is_plain else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _excluded(to: Path, key: str, above: dict[str, Any]) -> bool:
    """Whether an inherited key gives way to another: an exact count of GPUs to a least one, and back."""
    other = {"count": "at_least", "at_least": "count"}.get(key)
    return to == ("assumptions", "gpus") and other in above


def _at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def _dicts(entries: Any) -> list[dict[str, Any]]:
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _ids(entries: Any) -> set[str]:
    return {entry["id"] for entry in _dicts(entries) if isinstance(entry.get("id"), str)}


def _id(entry: Any) -> Hashable | None:
    found = entry.get("id") if isinstance(entry, dict) else None
    return found if isinstance(found, str) else None


def _waiver(entry: Any) -> Hashable | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("check"), str):
        return None
    return entry["check"], str(entry.get("subject", "*"))


_IDENTITIES: dict[str, Callable[[Any], Hashable | None]] = {"checks": _id, "scenarios": _id, "waivers": _waiver}
