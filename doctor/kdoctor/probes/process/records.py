"""Builds facts from the JSON records of child processes, and rejects invalid ones."""

import json
import textwrap
from typing import TypeVar

from pydantic import ValidationError

from kdoctor.documents import adapter_of

T = TypeVar("T")


class RecordError(Exception):
    """A record is invalid; the message names the field."""


def build(kind: type[T], record: object) -> T:
    """The dataclass that a record describes. Unknown keys are ignored.

    Raises:
        RecordError: a field is missing or has the wrong type.
    """
    try:
        value: T = adapter_of(kind).validate_json(json.dumps(record), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        found = textwrap.shorten(repr(first["input"]), 80, placeholder="...")
        raise RecordError(f"{kind.__name__}{place} is {'missing' if first['type'] == 'missing' else found}") from error
    return value
