"""Reads YAML into nodes. Safe: tags run no code, aliases are refused."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from kdoctor.errors import about_missing_file
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
        raise YamlSourceError(f"no such file{about_missing_file(path, '.yaml', '.yml')}") from error
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
        source = _read(text, noun, name)
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
    if source is None:
        raise YamlSourceError("the file is empty", 1, 1)
    return source


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


def _read(text: str, noun: str, name: str) -> Source | None:
    """The document; by libyaml where it is available, in a fraction of the time. None if there is none."""
    if yaml.__with_libyaml__ and not _LIBYAML_DIFFERS.search(text):
        try:
            return _Reader(yaml.parse(text, Loader=yaml.CSafeLoader), noun, name).document()
        except yaml.YAMLError:
            pass  # the reader in Python reports errors more precisely
    return _Reader(yaml.parse(text, Loader=yaml.SafeLoader), noun, name).document()


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


class _Reader:
    """Makes nodes of the events of PyYAML's parser, and collects problems. Nothing is built of what is refused."""

    def __init__(self, events: Iterator[yaml.Event], noun: str, file: str) -> None:
        self._events, self._noun, self._file = events, noun, file
        self._problems: list[Problem] = []
        self._constructor = yaml.constructor.SafeConstructor()
        self._resolver: Any = yaml.resolver.Resolver()

    def document(self) -> Source | None:
        """The only document of the stream."""
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        root = self._node(next(self._events))
        next(self._events)
        second = next(self._events)
        if isinstance(second, yaml.DocumentStartEvent):
            mark = self._mark(second)
            raise YamlSourceError(f"second document ('---'): a file holds one {self._noun}", mark.line, mark.column)
        return Source(root=root, problems=self._problems)

    def _node(self, event: yaml.Event, key: Mark | None = None, depth: int = 0) -> Node:
        """The value that begins with the event."""
        mark = self._mark(event)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, Node(value=event.value, mark=mark, key=key))
        if isinstance(event, yaml.AliasEvent):
            message = f"alias *{event.anchor} is not allowed in a {self._noun}: repeat the value"
            raise YamlSourceError(message, mark.line, mark.column)
        if depth == _DEEPEST:
            raise YamlSourceError(f"nested more than {_DEEPEST} levels deep", mark.line, mark.column)
        if isinstance(event, yaml.MappingStartEvent):
            return Node(value=dict(self._pairs(depth + 1)), mark=mark, key=key)
        return Node(value=[self._node(one, depth=depth + 1) for one in self._items()], mark=mark, key=key)

    def _items(self) -> Iterator[yaml.Event]:
        """The first events of the keys, values or items up to the end of the collection."""
        while not isinstance(event := next(self._events), yaml.CollectionEndEvent):
            yield event

    def _pairs(self, depth: int) -> Iterator[tuple[str, Node]]:
        first: dict[str, Mark] = {}
        for event in self._items():
            mark = self._mark(event)
            if not isinstance(event, yaml.ScalarEvent):
                self._problem(mark, "keys must be plain strings")
                self._node(event, depth=depth)
            value = self._node(next(self._events), mark, depth)
            if not isinstance(event, yaml.ScalarEvent):
                continue
            if event.value in first:
                self._problem(mark, f"duplicate key {event.value!r} (first defined on line {first[event.value].line})")
                continue
            first[event.value] = mark
            yield event.value, value

    def _mark(self, event: yaml.Event) -> Mark:
        start: Any = event.start_mark
        return Mark(start.line + 1, start.column + 1, self._file)

    def _problem(self, mark: Mark, message: str) -> None:
        self._problems.append(Problem(line=mark.line, column=mark.column, message=message, source=mark.file))

    def _scalar(self, event: yaml.ScalarEvent, made: Node) -> Node:
        tag = event.tag
        if tag in (None, "!"):
            tag = self._resolver.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag == _STRING:
            return made
        made.text, made.value = event.value, None
        if tag not in _SCALARS:
            self._problem(made.mark, f"tag {tag!r} is not allowed in a {self._noun}")
            return made
        try:
            made.value = self._constructor.construct_object(yaml.ScalarNode(tag, event.value))
        except (ValueError, OverflowError, LookupError, AttributeError, TypeError) as error:
            self._problem(made.mark, f"{event.value!r:.60} cannot be read as {tag.rpartition(':')[2]}: {error!s:.60}")
        if isinstance(made.value, int | float) and not -_LARGEST_NUMBER < made.value < _LARGEST_NUMBER:  # nor is NaN
            self._problem(made.mark, f"the number {event.value!s:.60} is too large, or not finite")
            made.value = None
        return made
