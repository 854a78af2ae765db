"""How a finding can be fixed, as data. :mod:`kdoctor_lint.fixes` applies it to the source."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Change(NamedTuple):
    """What becomes of an argument."""

    name: str
    """The new name; empty to remove the argument."""
    value: str = ""
    """The new value, as code; empty to keep it."""
    only: str = ""
    """The value that the change is for, as code; empty for any."""


REMOVE = Change("")


@dataclass(frozen=True)
class Keywords:
    """Rename, replace or remove arguments that are passed by name."""

    changes: Mapping[str, Change]

    def fits(self, node: ast.AST) -> bool:
        """Whether the edit applies to a node."""
        if not isinstance(node, ast.Call):
            return False
        given = {item.arg: item.value for item in node.keywords}
        found = {name: change for name, change in self.changes.items() if name in given}
        free = all(change.name not in given for change in found.values())
        fitting = all(not change.only or ast.unparse(given[name]) == change.only for name, change in found.items())
        return bool(found) and free and fitting


@dataclass(frozen=True)
class Method:
    """Call another method. Positional arguments after the first are passed by name."""

    name: str
    parameters: tuple[str, ...] = ()
    """The names of the positional arguments after the first."""
    keywords: Mapping[str, Change] = field(default_factory=dict)

    def fits(self, node: ast.AST) -> bool:
        """Whether the edit applies to a node."""
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and not any(isinstance(arg, ast.Starred) for arg in node.args)
            and (not self.parameters or len(node.args) <= 1 + len(self.parameters))
        )

    def is_lossless(self, node: ast.AST) -> bool:
        """Whether no argument is removed."""
        given = [item.arg for item in node.keywords] if isinstance(node, ast.Call) else []
        given += self.parameters[: len(node.args) - 1] if isinstance(node, ast.Call) and node.args else ()
        return not any(self.keywords.get(name or "") == REMOVE for name in given)


@dataclass(frozen=True)
class Name:
    """Use another name. Only the end of the name changes, so imports and aliases stay as they are."""

    old: tuple[str, ...]
    """The last parts of the old name."""
    new: tuple[str, ...]

    def fits(self, node: ast.AST) -> bool:
        """Whether the edit applies to a node."""
        return isinstance(node, ast.Attribute) and _ends(_dotted(node), self.old)

    def imported(self, holder: ast.ImportFrom, alias: ast.alias) -> Import | None:
        """What to import instead, or None if the statement cannot be changed."""
        module = tuple((holder.module or "").split("."))
        if _ends(module, self.old):
            return Import(".".join((*module[: -len(self.old)], *self.new)), alias.name)
        full = (*module, alias.name)
        if not _ends(full, self.old):
            return None
        *before, name = full[: -len(self.old)] + self.new
        changed = ".".join(before)
        return Import(changed, name) if changed and (changed == holder.module or len(holder.names) == 1) else None


@dataclass(frozen=True)
class Import:
    """Import a name from another module, or not at all."""

    module: str = ""
    """The module; empty to remove the import."""
    name: str = ""


@dataclass(frozen=True)
class Cast:
    """``tf.to_float(x)`` becomes ``tf.cast(x, tf.float32)``."""

    dtype: str

    def fits(self, node: ast.AST) -> bool:
        """Whether the edit applies to a node."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
            return False
        return len(node.args) == 1 and not isinstance(node.args[0], ast.Starred)


@dataclass(frozen=True)
class Ending:
    """Give a path another ending."""

    keyword: str
    """The name of the argument, which may also be the first one."""
    ending: str
    replaced: tuple[str, ...] = ()
    """The endings that are replaced. Any other is kept, and the new one is added."""

    def fits(self, node: ast.AST) -> bool:
        """Whether the edit applies to a node."""
        if not isinstance(node, ast.Call):
            return False
        given = [*node.args[:1], *(item.value for item in node.keywords if item.arg == self.keyword)]
        return len(given) == 1 and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str)

    def changed(self, path: str) -> str:
        """The path with the new ending."""
        old = next((ending for ending in self.replaced if path.endswith(ending)), "")
        return path.removesuffix(old).rstrip("/") + self.ending


OfRemoved = Keywords | Method | Name | Cast | Ending
"""Edits of names and calls."""
Edit = OfRemoved | Import


class Fix(NamedTuple):
    """An edit of a node of the code."""

    edit: Edit
    node: ast.AST
    safe: bool
    """Whether the fixed code certainly does what the old code did where it still worked."""


def _dotted(node: ast.AST) -> tuple[str, ...]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return tuple(reversed(parts))


def _ends(parts: tuple[str, ...], end: tuple[str, ...]) -> bool:
    return bool(end) and len(parts) > len(end) and parts[-len(end) :] == end
