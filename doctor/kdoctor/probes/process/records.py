"""Makes facts of the JSON records that child processes send, and refuses what does not fit."""

from __future__ import annotations

import json
import textwrap
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


class RecordError(Exception):
    """A record is not what its program promised; the message names the place in it."""


_READERS: dict[object, TypeAdapter[Any]] = {}


def _reader(kind: type[Any]) -> TypeAdapter[Any]:
    """The reader of such records, made once."""
    # Here, so that the probes are at work before pydantic is imported: that takes as long as starting one.

    if kind not in _READERS:
        _READERS[kind] = TypeAdapter(kind)
    return _READERS[kind]


def prepare(kind: type[Any]) -> None:
    """Make the reader of such records beforehand, while a child is still at work."""
    _reader(kind)


def build(kind: type[T], record: object) -> T:
    """The value of a dataclass that a record describes. Unknown keys are ignored.

    Raises:
        RecordError: a field is missing or of another type.
    """
    try:
        value: T = _reader(kind).validate_json(json.dumps(record), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        what = (
            "missing" if first["type"] == "missing" else textwrap.shorten(repr(first["input"]), 80, placeholder="...")
        )
        raise RecordError(f"{kind.__name__}{place} is {what}") from error
    return value
