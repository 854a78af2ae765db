"""A YAML document as a tree of nodes: every value with the place where it is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from kdoctor.yamldoc.problems import Problem

Path = tuple[str | int, ...]
"""Keys and indices from the top of a document to a value."""


class Mark(NamedTuple):
    """A place in a file, counted from 1."""

    line: int = 1
    column: int = 1
    file: str = ""
    """Set where a document is put together from several files."""


@dataclass(kw_only=True)
class Node:
    """A value with its place. Mappings hold nodes by key, lists hold nodes."""

    value: Any
    mark: Mark
    """Where the value starts."""
    key: Mark | None = None
    """Where its key starts, in a mapping."""
    text: str | None = None
    """A scalar as it is written, where YAML reads it as something other than a string."""

    @property
    def data(self) -> Any:
        """The plain value, without places."""
        if isinstance(self.value, dict):
            return {key: node.data for key, node in self.value.items()}
        return [node.data for node in self.value] if isinstance(self.value, list) else self.value

    def get(self, key: str) -> Node | None:
        """The node of that key; None if it is missing or this is not a mapping."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def entries(self, key: str) -> Iterator[Node]:
        """The mappings in the list of that key."""
        node = self.get(key)
        for entry in node.value if node is not None and isinstance(node.value, list) else ():
            if isinstance(entry.value, dict):
                yield entry

    def mapping(self, key: str) -> dict[str, Node]:
        """The mapping of that key; empty if there is none."""
        node = self.get(key)
        return node.value if node is not None and isinstance(node.value, dict) else {}

    def string(self, key: str) -> str | None:
        """The string of that key, if it is one."""
        node = self.get(key)
        return node.value if node is not None and isinstance(node.value, str) else None

    def at(self, path: Path) -> Node:
        """The node at that path, or the nearest one above it that exists."""
        node = self
        for step in path:
            if isinstance(node.value, str):
                break  # validation makes a list of it
            try:
                node = node.value[step]
            except (KeyError, IndexError, TypeError):
                break
        return node

    def problem(self, message: str, *, at_key: bool = False) -> Problem:
        """A problem at this value, or at its key."""
        mark = (self.key if at_key else None) or self.mark
        return Problem(line=mark.line, column=mark.column, message=message, source=mark.file)
