"""How a finding can be fixed, as data. :mod:`kdoctor_lint.fixes` applies it to the source."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

REMOVE = ""  # The new name of an argument that is removed


@dataclass(frozen=True)
class Called:
    """Call another method, or pass arguments under other names."""

    name: str = ""  # The new name of the method; empty to keep it
    keywords: Mapping[str, str] = field(default_factory=dict)  # The new names of arguments that are passed by name

    def fits(self, node: ast.AST) -> bool:
        """Whether the edit applies to a node. Further positional arguments may mean others in the new method."""
        if not isinstance(node, ast.Call) or (self.name and not isinstance(node.func, ast.Attribute)):
            return False
        given = {item.arg for item in node.keywords}
        found = [name for old, name in self.keywords.items() if old in given]
        positional = not self.keywords or not self.name or len(node.args) <= 1
        starred = bool(self.name) and any(isinstance(arg, ast.Starred) for arg in node.args)
        return bool(self.name or found) and not given.intersection(found) and positional and not starred

    def is_lossless(self, node: ast.AST) -> bool:
        """Whether no argument is removed."""
        given = node.keywords if isinstance(node, ast.Call) else []
        return not any(self.keywords.get(item.arg or "?") == REMOVE for item in given)


@dataclass(frozen=True)
class Name:
    """Use another name. Only the end of the name changes, so imports and aliases stay as they are."""

    old: tuple[str, ...]  # The last parts of the old name
    new: tuple[str, ...]

    def fits(self, node: ast.AST) -> bool:
        """Whether the edit applies to a node."""
        return isinstance(node, ast.Attribute) and ast.unparse(node).endswith("." + ".".join(self.old))


Edit = Called | Name


class Fix(NamedTuple):
    """An edit of a node of the code."""

    edit: Edit
    node: ast.AST
    safe: bool  # Whether the fixed code certainly does what the old code did where it still worked
