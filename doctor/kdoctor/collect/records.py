"""Makes facts of the JSON records that child processes send, and refuses what does not fit."""

from __future__ import annotations

import dataclasses
import textwrap
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


class RecordError(Exception):
    """A record is not what its program promised; the message names the place in it."""


def build(kind: type[T], record: object) -> T:
    """The value of a dataclass that a record describes. Unknown keys are ignored.

    The annotations that facts use are understood: str, int, float, bool, None, unions, Literal, ``tuple[X, ...]``,
    ``Mapping[str, X]`` and dataclasses.

    Raises:
        RecordError: a field is missing or of another type.
    """
    return typing.cast(T, _build(kind, record, kind.__name__))


def _build(kind: Any, value: object, place: str) -> object:
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _build_union(typing.get_args(kind), value, place)
    if origin is typing.Literal:
        if value in typing.get_args(kind):
            return value
    elif origin is tuple and isinstance(value, list):
        member = typing.get_args(kind)[0]
        return tuple(_build(member, entry, f"{place}[{index}]") for index, entry in enumerate(value))
    elif origin is not None and issubclass(origin, Mapping) and isinstance(value, dict):
        member = typing.get_args(kind)[1]
        return {str(key): _build(member, entry, f"{place}.{key}") for key, entry in value.items()}
    elif dataclasses.is_dataclass(kind) and isinstance(value, dict):
        return _build_dataclass(typing.cast("type[Any]", kind), value, place)
    elif _is_plain(kind, value):
        return value
    raise RecordError(f"{place} is {_short(value)}")


def _is_plain(kind: Any, value: object) -> bool:
    """Whether it is a plain value of that type; a truth value is no number, and an int is a float too."""
    if kind is type(None):
        return value is None
    if isinstance(value, bool):
        return kind is bool
    return kind in (str, int, float) and isinstance(value, (int, float) if kind is float else kind)


def _build_union(members: tuple[Any, ...], value: object, place: str) -> object:
    """The first member that fits; if none does, the trouble of the first, which says more than "is not None"."""
    troubles: list[RecordError] = []
    for member in members:
        try:
            return _build(member, value, place)
        except RecordError as error:  # noqa: PERF203 - trying is the only way to tell
            troubles.append(error)
    raise troubles[0]


def _build_dataclass(kind: type[Any], value: dict[str, object], place: str) -> object:
    hints = _hints(typing.cast("Callable[..., Any]", kind))
    arguments: dict[str, object] = {}
    for field in dataclasses.fields(kind):
        if field.name in value:
            arguments[field.name] = _build(hints[field.name], value[field.name], f"{place}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise RecordError(f"{place}.{field.name} is missing")
    return kind(**arguments)


@cache
def _hints(kind: Callable[..., Any]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _short(value: object) -> str:
    return textwrap.shorten(repr(value), 80, placeholder="...")
