"""YAML into plain values that know where they stand. Safe: tags run no code, aliases are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from kdoctor.yamldoc.problems import Problem

Path = tuple[str | int, ...]
"""Keys and indices from the document's top to a value."""

_DEEPEST = 12
_LARGEST_BYTES = 512 * 1024
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( |$)", re.MULTILINE)
_ODD_NUMBER = re.compile(r"[-+]?(?:[\d_]+:|0[0-7_]+$)")
"""Numbers to the base of 60 or 8, which YAML 1.1 has and nobody means: ``1:30`` is 90, ``010`` is 8."""
_READ_OTHERWISE = re.compile(r"[\t\ufeff]|(?:^|\s)\?(?:\s|$)")
"""What libyaml takes and PyYAML refuses (a tab in a text), or places elsewhere (a mark in the file, a ``? key``)."""
_SCALARS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp")}


class YamlSourceError(Exception):
    """The text is no YAML that a document of ours may be."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(line=line, column=column, message=message)


@dataclass(kw_only=True)
class Source:
    """A document's values with their places."""

    data: Any = None
    values: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Line and column, counted from 1, where a value starts."""
    keys: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """The same of the key that a value stands under."""
    texts: dict[Path, str] = field(default_factory=dict)
    """A value as it was written, for those that YAML read as something else than text."""
    noun: str = "checklist"
    """What the document is, in messages."""
    name: str = ""
    """The file, where messages must name it: a document that is put together of several."""
    files: dict[Path, str] = field(default_factory=dict)
    """In a document that was put together of several: the file that a value stands in."""
    problems: list[Problem] = field(default_factory=list)
    """Duplicate keys and the like, which leave the rest readable."""

    def file(self, path: Path) -> str:
        """The file that a value stands in."""
        return self.files.get(path, self.name)

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> Problem:
        """A problem at that path, or at the nearest place above it that is known."""
        for length in range(len(path), -1, -1):
            part = path[:length]
            place = (self.keys.get(part) if at_key else None) or self.values.get(part) or self.keys.get(part)
            if place:
                return Problem(line=place[0], column=place[1], message=message, source=self.file(part))
        return Problem(line=1, column=1, message=message, source=self.name)


def read_yaml(content: bytes, noun: str = "checklist", name: str = "") -> Source:
    """Read one document.

    Args:
        content: the file's bytes.
        noun: what the document is, in messages.
        name: its file, where several are put together and messages must name it.

    Raises:
        YamlSourceError: it is not UTF-8, not YAML, not one document, too large or too deep, or uses aliases.
    """
    text = _decode(content, noun)
    _refuse_conflicts(text)
    try:
        node = _compose(text, noun)
    except yaml.MarkedYAMLError as error:
        raise _from_yaml_error(error) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlSourceError(f"a control character ({_code(error.character)}) stands in the text", line, 1) from error
    if node is None:
        raise YamlSourceError("the file is empty", 1, 1)
    source = Source(noun=noun, name=name)
    source.data = _convert(node, (), source)
    return source


def _decode(content: bytes, noun: str) -> str:
    if len(content) > _LARGEST_BYTES:
        raise YamlSourceError(f"the file is too large to be a {noun} (over {_LARGEST_BYTES // 1024} KiB)")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        what = f"the file is not UTF-8 (byte 0x{content[error.start]:02x}): save it as UTF-8"
        raise YamlSourceError(what, line, column) from error


def _refuse_conflicts(text: str) -> None:
    found = _CONFLICT.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        raise YamlSourceError(f"an unresolved merge conflict ({found[1]}): resolve it first", line, 1)


def _compose(text: str, noun: str) -> yaml.Node | None:
    """The document's nodes. Where PyYAML was built with libyaml that reads it, in a tenth of the time."""
    if yaml.__with_libyaml__ and not _READ_OTHERWISE.search(text):
        try:
            return _compose_with(yaml.CSafeLoader, text, noun)
        except yaml.YAMLError:
            # PyYAML's own reader says better what is wrong, and where.
            pass
    return _compose_with(yaml.SafeLoader, text, noun)


def _compose_with(loader: type[yaml.SafeLoader | yaml.CSafeLoader], text: str, noun: str) -> yaml.Node | None:
    _refuse_tricks(loader, text, noun)
    node: yaml.Node | None = yaml.compose(text, Loader=loader)
    return node


def _refuse_tricks(loader: type[yaml.SafeLoader | yaml.CSafeLoader], text: str, noun: str) -> None:
    """Refuse, before anything is built, what such a document never needs: aliases, depth, several documents."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=loader):
        mark = event.start_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        if isinstance(event, yaml.AliasEvent):
            raise YamlSourceError(f"the alias *{event.anchor}: write the value out, a {noun} has none", line, column)
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise YamlSourceError(f"a second document ('---'): one file holds one {noun}", line, column)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise YamlSourceError(f"nested more than {_DEEPEST} deep: this is no {noun}", line, column)


def _from_yaml_error(error: yaml.MarkedYAMLError) -> YamlSourceError:
    mark = error.problem_mark or error.context_mark
    what = " ".join(part for part in (error.context, error.problem) if part)
    if "'\\t'" in what:
        what += ": indent with spaces, not with tabs"
    return YamlSourceError(f"not YAML: {what}", mark.line + 1 if mark else None, mark.column + 1 if mark else None)


def _code(character: object) -> str:
    return f"U+{character:04X}" if isinstance(character, int) else repr(character)


def _convert(node: yaml.Node, path: Path, source: Source) -> Any:
    source.values[path] = _place(node)
    if isinstance(node, yaml.MappingNode):
        return dict(_pairs(node, path, source))
    if isinstance(node, yaml.SequenceNode):
        return [_convert(child, (*path, index), source) for index, child in enumerate(node.value)]
    return _scalar(node, path, source)


def _pairs(node: yaml.MappingNode, path: Path, source: Source) -> Iterator[tuple[str, Any]]:
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            line, column = _place(key_node)
            message = "a key must be plain text"
            source.problems.append(Problem(line=line, column=column, message=message, source=source.name))
            continue
        key = str(key_node.value)
        place = _place(key_node)
        here = (*path, key)
        if here in source.keys:
            first = source.keys[here][0]
            message = f"the key {key!r} stands here twice (first in line {first}): keep one"
            source.problems.append(Problem(line=place[0], column=place[1], message=message, source=source.name))
            continue
        source.keys[here] = place
        yield key, _convert(value_node, here, source)


def _scalar(node: yaml.Node, path: Path, source: Source) -> Any:
    if node.tag not in _SCALARS:
        source.problems.append(source.problem(path, f"the tag {node.tag!r} is not allowed in a {source.noun}"))
        return None
    try:
        value = yaml.constructor.SafeConstructor().construct_object(node)
    except (ValueError, OverflowError) as error:
        source.problems.append(source.problem(path, f"{node.value!r} cannot be read: {error}"))
        return None
    if isinstance(value, int | float) and _ODD_NUMBER.match(node.value):
        message = f"YAML reads {node.value} as the number {value}: write the number plainly, or the text in quotes"
        source.problems.append(source.problem(path, message))
    if not isinstance(value, str):
        source.texts[path] = str(node.value)
    return value


def _place(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
