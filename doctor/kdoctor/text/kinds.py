"""Describes values read from JSON or YAML, for error messages."""

import datetime as dt

_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"),
    (bool, "the boolean {value!r}"),
    ((int, float), "the number {value}"),
    (str, "the string {value!r:.60}"),
    (dt.date, "the date {value}"),
    (list, "a list"),
    (dict, "a mapping"),
)


def describe_kind(value: object) -> str:
    """The type of a value, with the value where it is short: ``the number 3``, ``a list``, ``null``."""
    name = next((name for kind, name in _NAMES if isinstance(value, kind)), type(value).__name__)
    return name.format(value=value)
