"""A version matrix's document into rows, strictly: what may stand in the file, and what is wrong with it.

It is written out by hand instead of with pydantic, because ``kdoctor matrix`` must answer as fast as ``--help``.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kdoctor.errors import did_you_mean
from kdoctor.matrix.fields import Fields, Mistakes, Path, kind_of
from kdoctor.matrix.rows import SECTIONS

SCHEMA = "kdoctor/version-matrix/v1"
"""The only version that this kdoctor knows."""

EXTENDS = ("shipped", "nothing")
"""What a matrix of one's own may extend: the shipped one, whose rows it adds to and replaces, or nothing."""

_SCHEMA = re.compile(r"kdoctor/version-matrix/v(\d+)")
_SHORT_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row as it was read, with its key and its place."""

    path: Path
    value: Any


@dataclass(frozen=True, kw_only=True)
class Document:
    """The rows of one file, by section and key."""

    extends: str
    updated: str
    platform: str
    sections: Mapping[str, Mapping[str, Row]]
    sources: Mapping[str, str]
    registering: tuple[str, ...]


def read_document(data: Any, mistakes: Mistakes) -> Document | None:
    """The rows of a document, with the mistakes noted; None where it is of another schema."""
    top = Fields(data, (), mistakes)
    if not isinstance(data, dict) or not _of_this_schema(top):
        return None
    extends = top.choice("extends", EXTENDS, needed=False) or "nothing"
    document = Document(
        extends=extends,
        updated=top.text("updated", dt.date.fromisoformat),
        platform=top.text("platform"),
        sources=top.pairs("sources", needed=extends == "nothing"),
        registering=top.texts("registering", needed=extends == "nothing"),
        sections={name: dict(_rows(top, name, extends, mistakes)) for name in SECTIONS},
    )
    top.close()
    return document


def _of_this_schema(top: Fields) -> bool:
    schema = top.maybe_text("schema", needed=True)
    if schema is None or schema == SCHEMA:
        return schema is not None
    found = _SCHEMA.fullmatch(schema)
    if found and int(found[1]) > 1:
        top.wrong("schema", f"{schema} is newer than this kdoctor knows ({SCHEMA}): upgrade keras-doctor")
    else:
        top.wrong("schema", f"'schema' is {schema!r}; expected {SCHEMA}{did_you_mean(schema, [SCHEMA])}")
    return False


def _rows(top: Fields, name: str, extends: str, mistakes: Mistakes) -> Iterator[tuple[str, Row]]:
    read, key_of = SECTIONS[name]
    value = top.take(name, needed=extends == "nothing")
    if value is not None and not isinstance(value, list):
        top.wrong(name, f"{name!r}: expected a list of rows, not {kind_of(value)}")
        return
    seen: set[str] = set()
    for at, item in enumerate(value or ()):
        path = (name, at)
        fields = Fields(item, path, mistakes)
        key = key_of(fields, item if isinstance(item, dict) else {})
        if key in seen:
            mistakes.add(path, f"{name}: {key} stands here twice: keep one")
        seen.add(key)
        yield key, Row(path=path, value=read(fields))


def cited(source: str, sources: Mapping[str, str]) -> str | None:
    """A source in words: its citation if it is a short name; None for a short name that is not listed."""
    return sources.get(source) if _SHORT_NAME.fullmatch(source) else source
