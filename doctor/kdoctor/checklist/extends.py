"""One checklist on top of another (``extends``): what the upper one states replaces what it inherits, key by key."""

import datetime as dt
import json
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any

from kdoctor.errors import did_you_mean
from kdoctor.facts import canonical_name
from kdoctor.records import record
from kdoctor.yamldoc.nodes import Node
from kdoctor.yamldoc.problems import Problem

KINDS = ("baseline", "edge-case", "failure-path")
"""The kinds of scenarios. A checklist has one of each, or states why not."""

_NEVER_INHERITED = ("schema", "name", "version")
_LONGEST = 60


@record
class Override:
    """One thing that a checklist changes in the checklist that it extends."""

    what: str
    """``checks.gpu.free.severity``, ``assumptions.gpus.count``, ``without.gpu.free``, ..."""
    old: str
    """The inherited value."""
    new: str
    """The value that replaces it, or ``nothing``."""
    inherited_from: str
    """The file or shipped name that states ``old``."""


def lay_over(base: Node, over: Node) -> tuple[Node, list[Override], list[Problem]]:
    """The merged checklist, what the upper one replaced, and what is wrong with its ``without``.

    Checks and scenarios are matched by id, waivers by check and subject, packages by their normalised names. The keys
    of an entry, and the parameters of a check, are replaced individually; a list of patterns is replaced as a whole.
    ``without`` removes inherited entries, each with a reason.
    """
    merger = _Merger(base, over)
    return merger.merge(), merger.overrides, merger.problems


def missing_keys(over: Node) -> Iterator[Problem]:
    """Keys that a checklist must state although it extends another."""
    for key in _NEVER_INHERITED:
        if over.get(key) is None:
            yield over.problem(f"missing key {key!r}, which is never inherited")


class _Merger:
    def __init__(self, base: Node, over: Node) -> None:
        self._base = base
        self._over = over
        self.overrides: list[Override] = []
        self.problems: list[Problem] = []

    def merge(self) -> Node:
        """The merged document."""
        base, over = self._base.value, self._over.value
        merged: dict[str, Node] = {}
        for key in dict.fromkeys([*over, *base]):
            if key not in base:
                merged[key] = over[key]
            elif key not in over or over[key].value is None:
                merged[key] = _copy(base[key])
            else:
                merged[key] = self._section(key, base[key], over[key])
        merged.pop("extends", None)
        self._leave_out(merged)
        return replace(self._over, value=merged)

    def _section(self, key: str, below: Node, above: Node) -> Node:
        if isinstance(below.value, list) and isinstance(above.value, list) and key in _IDENTITIES:
            return self._entries(key, below, above)
        if isinstance(below.value, dict) and isinstance(above.value, dict):
            return self._mapping(key, below, above)
        if key not in _NEVER_INHERITED:
            self._note(key, below, above)
        return above

    def _entries(self, section: str, below: Node, above: Node) -> Node:
        identity = _IDENTITIES[section]
        upper = {key: node for node in above.value if (key := identity(node)) is not None}
        merged: list[Node] = []
        used: set[int] = set()
        for node in below.value:
            over = upper.get(identity(node))
            if over is None:
                merged.append(node)
            else:
                used.add(id(over))
                merged.append(self._mapping(f"{section}.{node.string('id') or node.string('check')}", node, over))
        merged += [node for node in above.value if id(node) not in used]
        return replace(above, value=merged)

    def _mapping(self, name: str, below: Node, above: Node) -> Node:
        """Two mappings as one; mappings in them are merged, too."""
        same: Callable[[str], str] = canonical_name if name == "assumptions.packages" else str
        upper = {same(key): key for key in above.value}
        merged: dict[str, Node] = {}
        for key, node in below.value.items():
            own = upper.pop(same(key), None)
            if own is None:
                if name == "assumptions.gpus" and _OPPOSITE.get(key) in above.value:
                    self._note(f"{name}.{key}", node, None)
                else:
                    merged[key] = node
            elif isinstance(node.value, dict) and isinstance(above.value[own].value, dict):
                merged[own] = self._mapping(f"{name}.{own}", node, above.value[own])
            else:
                self._note(f"{name}.{own}", node, above.value[own])
                merged[own] = above.value[own]
        return replace(above, value={**merged, **{key: above.value[key] for key in upper.values()}})

    def _leave_out(self, merged: dict[str, Node]) -> None:
        """Remove what ``without`` names, and inherited reasons that no longer apply."""
        without = merged.get("without")
        if without is None or not isinstance(without.value, dict):
            return
        stated, inherited = self._over.mapping("without"), self._base.mapping("without")
        own = _ids(self._over)
        kinds = {entry.string("kind") for entry in self._over.entries("scenarios")}
        for key in [key for key in inherited if key not in stated and key in own | kinds]:
            self._note(f"without.{key}", without.value.pop(key), None)
        below = _ids(self._base)
        for key, node in stated.items():
            if key in own:
                self.problems.append(node.problem(f"{key} is both listed and left out: keep one", at_key=True))
            elif key in below:
                self._remove(key, merged)
            elif key not in KINDS:
                message = f"nothing named {key!r} is inherited{did_you_mean(key, below)}"
                self.problems.append(node.problem(message, at_key=True))

    def _remove(self, key: str, merged: dict[str, Node]) -> None:
        """Take a check or scenario out, with its waivers."""
        for section, name in (("checks", "id"), ("scenarios", "id"), ("waivers", "check")):
            if section not in merged or not isinstance(merged[section].value, list):
                continue
            entries = merged[section].value
            gone = [entry for entry in entries if entry.string(name) == key]
            if gone and name == "id":
                self._note(f"{section}.{key}", "listed", None, gone[0].mark.file)
            merged[section].value = [entry for entry in entries if entry.string(name) != key]

    def _note(self, what: str, old: Node | str, new: Node | None, file: str | None = None) -> None:
        before = old.data if isinstance(old, Node) else old
        after = new.data if new is not None else None
        if before != after:
            file = file or (old.mark.file if isinstance(old, Node) else "")
            self.overrides.append(Override(what=what, old=shown(before), new=shown(after), inherited_from=file))


def shown(value: Any) -> str:
    """A value on one short line."""
    if value is None:
        return "nothing"
    is_plain = isinstance(value, str | dt.date)
    text = str(value) if is_plain else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _copy(node: Node) -> Node:
    """The node with its own list or mapping, so that entries can be removed."""
    return replace(node, value=node.value.copy()) if isinstance(node.value, dict | list) else node


_OPPOSITE = {"count": "at_least", "at_least": "count"}
"""An exact number of GPUs replaces an inherited minimum, and the reverse."""


def _ids(document: Node) -> set[str]:
    entries = [*document.entries("checks"), *document.entries("scenarios")]
    return {found for entry in entries if (found := entry.string("id")) is not None}


def _id(entry: Node) -> Hashable | None:
    return entry.string("id")


def _waiver(entry: Node) -> Hashable | None:
    check, subject = entry.string("check"), entry.get("subject")
    return None if check is None else (check, str(subject.data) if subject else "*")


_IDENTITIES: dict[str, Callable[[Node], Hashable | None]] = {"checks": _id, "scenarios": _id, "waivers": _waiver}
