"""Values that cannot be are treated as not read: a temperature of 0 K does not show that a GPU is cool.

Numbers out of the bounds of their fields (:mod:`kdoctor.facts.bounds`) and empty texts become None. A group that keeps
the errors of its calls (``errors``) names the value there.
"""

import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, TypeVar

from kdoctor.facts.bounds import MayBeEmpty, Within
from kdoctor.facts.gpus import Gpu, Gpus
from kdoctor.facts.sampling import Spread

T = TypeVar("T")

LARGEST_MACHINE = 128
"""GPUs of one machine that are judged. Checks compare each with each, and no machine is known to have more than 32."""


def plausible(value: T) -> T:
    """The same facts without values that cannot be, of a machine of possible size."""
    cleaned: T = _without(_within_bounds(value) if isinstance(value, Gpus) else value)
    return cleaned


def _within_bounds(gpus: Gpus) -> Gpus:
    """The first GPUs, each once. Their count stays, so that a report says that some were not judged."""
    devices = _distinct(gpus.devices)[:LARGEST_MACHINE]
    if len(devices) == len(gpus.devices):
        return gpus
    kept = {gpu.index for gpu in devices}
    pairs = tuple(pair for pair in gpus.pairs if pair.first in kept and pair.second in kept)
    return replace(gpus, devices=devices, pairs=pairs, count=max(gpus.count or 0, len(gpus.devices)))


def _distinct(devices: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """The GPUs without those that have the index or the address of an earlier one: they hide another GPU."""
    indexes: set[int] = set()
    addresses: set[str] = set()
    kept: list[Gpu] = []
    for gpu in devices:
        if gpu.index in indexes or gpu.bus_id in addresses:
            continue
        kept.append(gpu)
        indexes.add(gpu.index)
        if gpu.bus_id:
            addresses.add(gpu.bus_id)
    return tuple(kept)


def _without(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _checked(value)
    if isinstance(value, tuple):
        items = tuple(_without(item) for item in value) if value and not isinstance(value[0], str | int) else value
        return value if all(one is other for one, other in zip(items, value, strict=True)) else items
    if isinstance(value, Mapping):
        entries = {key: _without(item) for key, item in value.items()}
        return value if all(entries[key] is value[key] for key in value) else entries
    return value


def _checked(value: Any) -> Any:
    changes: dict[str, Any] = {}
    impossible: dict[str, str] = {}
    known = _fields(value.__class__)
    for name, field in known.items():
        found = getattr(value, name)
        if found is None or isinstance(found, bool):
            continue
        if isinstance(found, int | float | str):
            if field.may_be_none and not field.allows(found):
                changes[name] = None
                impossible[name] = f"impossible value {found!r}" if found != "" else "an empty text"
        elif field.may_be_none and isinstance(found, Spread):
            if not all(map(field.allows, (found.low, found.mean, found.high))):
                changes[name] = None
        elif (cleaned := _without(found)) is not found:
            changes[name] = cleaned
    if impossible and "errors" in known:
        changes["errors"] = {**impossible, **changes.get("errors", value.errors)}
    return replace(value, **changes) if changes else value


class _Field(NamedTuple):
    may_be_none: bool
    may_be_empty: bool
    bounds: Within

    def allows(self, value: float | str) -> bool:
        """Whether the value can be."""
        if isinstance(value, str):
            return self.may_be_empty or bool(value.strip())
        return self.bounds.least <= value <= self.bounds.most  # NaN is not


@cache
def _fields(kind: type[Any]) -> Mapping[str, _Field]:
    """The fields of a dataclass, as their type hints describe them."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: _field(hints[field.name]) for field in fields(kind) if field.init}


def _field(hint: Any) -> _Field:
    extras: tuple[Any, ...] = getattr(hint, "__metadata__", ())
    plain = typing.get_args(hint)[0] if extras else hint
    is_union = isinstance(plain, UnionType) or typing.get_origin(plain) is typing.Union
    return _Field(
        may_be_none=is_union and type(None) in typing.get_args(plain),
        may_be_empty=any(isinstance(extra, MayBeEmpty) for extra in extras),
        bounds=next((extra for extra in extras if isinstance(extra, Within)), Within()),
    )
