"""Reads YAML into nodes. Safe: tags run no code, aliases are refused."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from kdoctor.errors import did_you_mean_file
from kdoctor.yamldoc.nodes import Mark, Node
from kdoctor.yamldoc.problems import Problem

_DEEPEST = 12
_LARGEST_BYTES = 512 * 1024
_LARGEST_NUMBER = 2**63
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( |$)", re.MULTILINE)
_LIBYAML_DIFFERS = re.compile(r"[\t\ufeff]|(?:^|\s)\?(?:\s|$)")
"""Text that libyaml accepts and PyYAML refuses (a tab), or places differently (a byte order mark, a ``? key``)."""
_STRING = "tag:yaml.org,2002:str"
_SCALARS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp")}


class YamlSourceError(Exception):
    """The text cannot be read as one YAML document."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(line=line, column=column, message=message)


@dataclass(kw_only=True)
class Source:
    """A document as nodes, and the problems that leave the rest readable."""

    root: Node
    problems: list[Problem] = field(default_factory=list)
    """Duplicate keys, tags and the like."""


_NO_CHARACTER = re.compile(r"\\U(?!000|0010)[0-9A-Fa-f]{8}|^%YAML", re.MULTILINE)
"""An escape above the last character of Unicode, or the number of a version."""


def read_file(path: FilePath, noun: str) -> bytes:
    """Read a file that should hold a document; ``noun`` says which.

    Raises:
        YamlSourceError: it does not exist or cannot be read.
    """
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - they never raise
            raise YamlSourceError(f"{'a directory' if path.is_dir() else 'not a regular file'}, expected a {noun}")
        with path.open("rb") as file:
            return _refuse_large(file.read(_LARGEST_BYTES + 1), noun)
    except FileNotFoundError as error:
        near = [item.name for item in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
        raise YamlSourceError(f"no such file{did_you_mean_file(path.name, near)}") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise YamlSourceError(f"cannot be read: {reason}") from error


def read_yaml(content: bytes, noun: str = "checklist", name: str = "") -> Source:
    """Read one document.

    Args:
        content: the bytes of the file.
        noun: what the document is, for messages.
        name: the file, if several are put together and messages must name it.

    Raises:
        YamlSourceError: not UTF-8, not YAML, not one document, too large or too deep, or with aliases.
    """
    text = _decode(content, noun)
    conflict = _CONFLICT.search(text)
    if conflict:
        line = text.count("\n", 0, conflict.start()) + 1
        raise YamlSourceError(f"unresolved merge conflict ({conflict[1]})", line, 1)
    try:
        node = _compose(text, noun)
    except yaml.MarkedYAMLError as error:
        raise _from_yaml_error(error) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlSourceError(f"control character {_code(error.character)} in the text", line, 1) from error
    except (ValueError, OverflowError) as error:  # PyYAML does not catch them
        found = _NO_CHARACTER.search(text)
        line = text.count("\n", 0, found.start()) + 1 if found else 1
        raise YamlSourceError(
            "invalid YAML: an escape of no character, or a number of too many digits", line
        ) from error
    if node is None:
        raise YamlSourceError("the file is empty", 1, 1)
    builder = _Builder(noun, name)
    return Source(root=builder.node(node), problems=builder.problems)


def _refuse_large(content: bytes, noun: str) -> bytes:
    if len(content) > _LARGEST_BYTES:
        raise YamlSourceError(f"the file is too large for a {noun} (over {_LARGEST_BYTES // 1024} KiB)")
    return content


def _decode(content: bytes, noun: str) -> str:
    try:
        return _refuse_large(content, noun).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        message = f"the file is not UTF-8 (byte 0x{content[error.start]:02x}): save it as UTF-8"
        raise YamlSourceError(message, line, column) from error


def _compose(text: str, noun: str) -> yaml.Node | None:
    """The nodes of PyYAML; read by libyaml where it is available, in a tenth of the time."""
    if yaml.__with_libyaml__ and not _LIBYAML_DIFFERS.search(text):
        try:
            return _compose_with(yaml.CSafeLoader, text, noun)
        except yaml.YAMLError:
            pass  # the reader in Python reports errors more precisely
    return _compose_with(yaml.SafeLoader, text, noun)


def _compose_with(loader: type[yaml.SafeLoader | yaml.CSafeLoader], text: str, noun: str) -> yaml.Node | None:
    _refuse_tricks(loader, text, noun)
    node: yaml.Node | None = yaml.compose(text, Loader=loader)
    return node


def _refuse_tricks(loader: type[yaml.SafeLoader | yaml.CSafeLoader], text: str, noun: str) -> None:
    """Refuse aliases, deep nesting and several documents before anything is built."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=loader):
        mark = event.start_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        if isinstance(event, yaml.AliasEvent):
            raise YamlSourceError(f"alias *{event.anchor} is not allowed in a {noun}: repeat the value", line, column)
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise YamlSourceError(f"second document ('---'): a file holds one {noun}", line, column)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise YamlSourceError(f"nested more than {_DEEPEST} levels deep", line, column)


def _from_yaml_error(error: yaml.MarkedYAMLError) -> YamlSourceError:
    mark = error.problem_mark or error.context_mark
    reason = " ".join(part for part in (error.context, error.problem) if part)
    if "'\\t'" in reason:
        reason += ": indent with spaces, not with tabs"
    return YamlSourceError(
        f"invalid YAML: {reason}", mark.line + 1 if mark else None, mark.column + 1 if mark else None
    )


def _code(character: object) -> str:
    return f"U+{character:04X}" if isinstance(character, int) else repr(character)


class _Builder:
    """Turns the nodes of PyYAML into ours, and collects problems."""

    def __init__(self, noun: str, file: str) -> None:
        self._noun, self._file = noun, file
        self.problems: list[Problem] = []
        self._constructor = yaml.constructor.SafeConstructor()

    def node(self, node: yaml.Node, key: Mark | None = None) -> Node:
        """The value with its place."""
        made = Node(value=None, mark=self._mark(node), key=key)
        if isinstance(node, yaml.MappingNode):
            made.value = dict(self._pairs(node))
        elif isinstance(node, yaml.SequenceNode):
            made.value = [self.node(child) for child in node.value]
        else:
            made.value = self._scalar(node, made)
            if not isinstance(made.value, str):
                made.text = str(node.value)
        return made

    def _mark(self, node: yaml.Node) -> Mark:
        return Mark(line=node.start_mark.line + 1, column=node.start_mark.column + 1, file=self._file)

    def _problem(self, mark: Mark, message: str) -> None:
        self.problems.append(Problem(line=mark.line, column=mark.column, message=message, source=mark.file))

    def _pairs(self, node: yaml.MappingNode) -> Iterator[tuple[str, Node]]:
        first: dict[str, Mark] = {}
        for key_node, value_node in node.value:
            mark = self._mark(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(mark, "keys must be plain strings")
                continue
            key = str(key_node.value)
            if key in first:
                self._problem(mark, f"duplicate key {key!r} (first defined on line {first[key].line})")
                continue
            first[key] = mark
            yield key, self.node(value_node, mark)

    def _scalar(self, node: yaml.Node, made: Node) -> Any:
        if node.tag not in _SCALARS:
            self._problem(made.mark, f"tag {node.tag!r} is not allowed in a {self._noun}")
            return None
        if node.tag == _STRING:
            return node.value
        try:
            value = self._constructor.construct_object(node)
        except (ValueError, OverflowError, LookupError, AttributeError, TypeError) as error:
            self._problem(
                made.mark, f"{node.value!r:.60} cannot be read as {node.tag.rpartition(':')[2]}: {error!s:.60}"
            )
            return None
        if isinstance(value, int | float) and not -_LARGEST_NUMBER < value < _LARGEST_NUMBER:  # nor is NaN
            self._problem(made.mark, f"the number {node.value!s:.60} is too large, or not finite")
            return None
        return value
