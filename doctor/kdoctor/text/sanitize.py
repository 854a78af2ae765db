"""Removes from texts of other programs what would control a terminal, a CI service or a page."""

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")

_UNFIT = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufffe\uffff"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
_ANSI = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_WORKFLOW_COMMAND = re.compile(
    r"(?<!\S)::(?=(?:add-mask|add-matcher|add-path|debug|echo|end-?group|error|group|notice|remove-matcher|save-state"
    r"|set-env|set-output|stop-commands|warning)\b)|##(?=\[)|##(?=vso\[)",
    re.IGNORECASE,
)
"""What GitHub Actions and Azure Pipelines obey in a log, where a line begins with it or, for ``##[``, anywhere."""


def clean(text: str) -> str:
    """The text without colour codes, and with other control characters, lone surrogates and CI commands escaped.

    These could control the reader's terminal or CI service, or make XML and JSON unreadable. Line feeds and tabs stay.
    """
    plain = _escaped(_ANSI.sub("", text).replace("\r\n", "\n"))
    if "::" not in plain and "##" not in plain:
        return plain  # the search would take most of the time
    return _WORKFLOW_COMMAND.sub(lambda found: f"\\x{ord(found[0][0]):02x}{found[0][1:]}", plain)


def clean_line(text: str) -> str:
    """As :func:`clean`, on one line."""
    return clean(text).replace("\n", "\\n").replace("\t", " ")


def clean_rendered(text: str) -> str:
    """A rendered text with its colours, and without other control characters."""
    return "".join(part if number % 2 else _escaped(part) for number, part in enumerate(_COLOUR.split(text)))


def clean_json(text: str) -> str:
    """JSON with the characters escaped that it allows, and that could control a terminal."""
    return _UNFIT.sub(lambda found: json.dumps(found[0])[1:-1], text)


def is_printable(text: str) -> bool:
    """Whether the text has no control characters except line feeds and tabs."""
    return _UNFIT.search(text) is None


def cleaned(value: T) -> T:
    """The same dataclass with every text in it cleaned, also in tuples, mappings and other dataclasses."""
    return _walk(value)  # type: ignore[no-any-return]


def _walk(value: Any) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, tuple):
        return tuple(_walk(item) for item in value)
    if isinstance(value, Mapping):
        return {_walk(key): _walk(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _walk(getattr(value, field.name)) for field in fields(value)})
    return value


def _escaped(text: str) -> str:
    return _UNFIT.sub(lambda found: escape(ord(found[0])), text)


def escape(code: int) -> str:
    """A code point as Python and YAML write it."""
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the three forms
