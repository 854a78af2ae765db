"""Removes control characters from texts that come from other programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")

_UNFIT = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_ANSI = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")


def clean(text: str) -> str:
    """The text without colour codes, and with other control characters and lone surrogates escaped.

    These could control the reader's terminal, or make XML and JSON unreadable. Line feeds and tabs stay.
    """
    plain = _ANSI.sub("", text).replace("\r\n", "\n")
    return _UNFIT.sub(lambda found: _escape(found[0]), plain)


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


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - as Python writes them
