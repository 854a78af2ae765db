"""Every way to take one fact away, or to replace it by a value that cannot be."""

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from types import UnionType
from typing import Any, Literal

from kdoctor.facts import FactGroup
from kdoctor.facts.plausible import plausible

Kind = Literal["none", "empty", "removed", "zero", "negative", "huge"]

_HUGE = 2**62
_MOST_KEYS = 40
"""Entries of a mapping that are taken away in sequence."""


@dataclass(frozen=True)
class Mutation:
    """A group of facts with one change."""

    path: str
    """``gpus.devices.*.bus_id``"""
    kind: Kind
    group: FactGroup
    lost: bool
    """Whether information is lost. A zero or a huge number may be a value like any other."""


def mutations(group: FactGroup) -> Iterator[Mutation]:
    """Every change of one field of a group; of several equal items, of the one in the middle."""
    for path, kind, changed, nullable in _changes(group, type(group), group.group):
        lost = kind in ("none", "empty", "removed") or (nullable and _is_dropped(group, changed))
        yield Mutation(path=path, kind=kind, group=plausible(changed), lost=lost)


def _is_dropped(group: FactGroup, changed: FactGroup) -> bool:
    """Whether the value cannot be, so that it counts as not read."""
    return plausible(changed) != changed and plausible(group) == group


Change = tuple[str, Kind, Any, bool]
"""The path, what is done, the changed value, and whether the field may be None."""


def _changes(value: Any, hint: Any, path: str, *, nullable: bool = False) -> Iterator[Change]:
    if nullable and value is not None:
        yield path, "none", None, True
    if value is None or isinstance(value, bool):
        return
    if is_dataclass(value):
        for name, inner in _hints(type(value)).items():
            for place, kind, changed, may_be_none in _of(getattr(value, name), inner, f"{path}.{name}"):
                yield place, kind, replace(value, **{name: changed}), may_be_none  # type: ignore[type-var]
    elif isinstance(value, tuple):
        yield from _of_tuple(value, hint, path)
    elif isinstance(value, Mapping):
        yield from _of_mapping(value, hint, path)
    else:
        yield from _of_scalar(value, hint, path, nullable=nullable)


def _of_scalar(value: Any, hint: Any, path: str, *, nullable: bool) -> Iterator[Change]:
    if isinstance(value, int | float):
        yield path, "zero", type(value)(0), nullable
        yield path, "negative", type(value)(-1), nullable
        yield path, "huge", type(value)(_HUGE), nullable
    elif isinstance(value, str) and nullable and typing.get_origin(hint) is not Literal:
        yield path, "empty", "", nullable


def _of_tuple(value: tuple[Any, ...], hint: Any, path: str) -> Iterator[Change]:
    if not value:
        return
    middle = len(value) // 2
    yield path, "empty", (), False
    yield f"{path}.*", "removed", value[:middle] + value[middle + 1 :], False
    for place, kind, changed, may_be_none in _of(value[middle], _argument(hint, 0), f"{path}.*"):
        yield place, kind, (*value[:middle], changed, *value[middle + 1 :]), may_be_none


def _of_mapping(value: Mapping[Any, Any], hint: Any, path: str) -> Iterator[Change]:
    if value:
        yield path, "empty", {}, False
    for key in list(value)[:_MOST_KEYS]:
        yield f"{path}.{key}", "removed", {name: item for name, item in value.items() if name != key}, False
        for place, kind, changed, may_be_none in _of(value[key], _argument(hint, 1), f"{path}.{key}"):
            yield place, kind, {**value, key: changed}, may_be_none


def _of(value: Any, hint: Any, path: str) -> Iterator[Change]:
    members = typing.get_args(hint) if isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union else ()
    known = [member for member in members if member is not type(None)]
    yield from _changes(value, known[0] if known else hint, path, nullable=type(None) in members)


def _argument(hint: Any, position: int) -> Any:
    arguments = typing.get_args(hint)
    return arguments[position] if len(arguments) > position else object


_known: dict[type[Any], dict[str, Any]] = {}


def _hints(kind: type[Any]) -> Mapping[str, Any]:
    if kind not in _known:
        hints = typing.get_type_hints(kind)
        _known[kind] = {field.name: hints[field.name] for field in fields(kind) if field.init}
    return _known[kind]
