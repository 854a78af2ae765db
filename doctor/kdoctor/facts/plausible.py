"""Values that cannot be are treated as not read: a temperature of 0 K does not show that a GPU is cool.

What cannot be is declared at the fields (:mod:`kdoctor.facts.bounds`). Numbers out of bounds, numbers that contradict
each other, identities that several records have, and empty texts become None. A group that keeps the errors of its
calls (``errors``) names the value there. Where a field cannot be None, its record is not in the list.
"""

import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import is_
from types import UnionType
from typing import Any, NamedTuple, TypeVar

from kdoctor.facts.bounds import SHARED, AtMost, Identity, MayBeEmpty, Within
from kdoctor.facts.gpus import GpuPair, Gpus
from kdoctor.facts.pci import PciBridge, PciDevices
from kdoctor.facts.sampling import Spread

T = TypeVar("T")

LARGEST_MACHINE = 128
"""GPUs of one machine that are judged. Checks compare each with each, and no machine is known to have more than 32."""


def plausible(value: T) -> T:
    """The same facts without values that cannot be, of a machine of possible size."""
    once: Any = _within_bounds(value) if isinstance(value, Gpus) else value
    cleaned: T = _without(_with_equal_bridges(once) if isinstance(once, PciDevices) else once)
    return cleaned


def _within_bounds(gpus: Gpus) -> Gpus:
    """The first GPUs and their pairs, each once. Their count stays: a report says that some were not judged."""
    devices = (_each_once(gpus.devices) if gpus.devices else ())[:LARGEST_MACHINE]
    pairs = _agreeing(gpus.pairs, {gpu.index for gpu in devices})
    if len(devices) < len(gpus.devices):
        return replace(gpus, devices=devices, pairs=pairs, count=max(gpus.count or 0, len(gpus.devices)))
    if devices != gpus.devices:  # of two with one identity, one may be another GPU
        gpus = replace(gpus, devices=devices, count=None, errors={**gpus.errors, "count": SHARED})
    return gpus if len(pairs) == len(gpus.pairs) else replace(gpus, pairs=pairs)


def _agreeing(pairs: tuple[GpuPair, ...], kept: set[int]) -> tuple[GpuPair, ...]:
    """The pairs of these GPUs, each once. Of one that is listed twice, differently, nothing is known."""
    listed: dict[frozenset[int], set[str]] = {}
    for pair in pairs:
        listed.setdefault(frozenset((pair.first, pair.second)), set()).add(repr(replace(pair, first=0, second=0)))
    agreed = {ends for ends, values in listed.items() if len(ends) == 2 and ends <= kept and len(values) == 1}  # noqa: PLR2004
    return tuple({ends: pair for pair in pairs if (ends := frozenset((pair.first, pair.second))) in agreed}.values())


def _with_equal_bridges(pci: PciDevices) -> PciDevices:
    """A bridge above several devices has one reading. What they disagree about was not read."""
    known: dict[str, PciBridge] = {}
    for bridge in (bridge for device in pci.devices for bridge in device.path or ()):
        other = known.setdefault(bridge.bus_id, bridge)
        unequal = [item.name for item in fields(bridge) if getattr(bridge, item.name) != getattr(other, item.name)]
        known[bridge.bus_id] = replace(other, **dict.fromkeys(unequal)) if unequal else other  # type: ignore[arg-type]
    devices = tuple(
        replace(device, path=tuple(known[bridge.bus_id] for bridge in device.path)) if device.path else device
        for device in pci.devices
    )
    return pci if devices == pci.devices else replace(pci, devices=devices)


def _each_once(records: tuple[Any, ...]) -> tuple[Any, ...]:
    """The records of a list, equal ones once. Of different ones with one identity it was not read, or they were not."""
    left_out: set[int] = set()
    unread: dict[int, dict[str, str]] = {}
    for name, field in _fields(records[0].__class__).items():
        places: dict[Any, int] = {}
        for place, record in enumerate(records if field.identifies else ()):
            value = getattr(record, name)
            first = places.setdefault(value, place)
            if value is None or first == place:
                continue
            if record == records[first]:
                left_out.add(place)
            elif field.may_be_none:
                for one in (first, place):
                    unread.setdefault(one, {})[name] = SHARED
            else:
                left_out |= {first, place}
    if not left_out and not unread:
        return records
    kept = (place for place in range(len(records)) if place not in left_out)
    return tuple(_unread(records[place], unread.get(place, {})) for place in kept)


def _unread(record: Any, why: Mapping[str, str]) -> Any:
    errors = {"errors": {**why, **record.errors}} if why and hasattr(record, "errors") else {}
    return replace(record, **dict.fromkeys(why), **errors) if why else record


def _without(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _checked(value)
    if isinstance(value, tuple):
        if not value or isinstance(value[0], str | int | float):
            return value
        items = tuple(_without(item) for item in value)
        items = tuple(item for item, old in zip(items, value, strict=True) if item is not None or old is None)
        items = _each_once(items) if items and is_dataclass(items[0]) else items
        return value if len(items) == len(value) and all(map(is_, items, value)) else items
    if isinstance(value, Mapping):
        entries = {key: _without(item) for key, item in value.items()}
        return value if all(entries[key] is value[key] for key in value) else entries
    return value


def _checked(value: Any) -> Any:
    """The record without what cannot be; None if it cannot be used without it."""
    changes: dict[str, Any] = {}
    refused: dict[str, str] = {}
    known = _fields(value.__class__)
    for name, field in known.items():
        found, most = getattr(value, name), getattr(value, field.at_most) if field.at_most else None
        if field.may_be_none and (why := field.problem(found)):
            refused[name] = why
        elif found is not None and most is not None and found > most:
            unread = [one for one in (name, field.at_most) if known[one].may_be_none]
            if not unread:
                return None
            refused |= dict.fromkeys(unread, f"impossible values: {name} {found!r}, {field.at_most} {most!r}")
        elif (cleaned := _without(found)) is not found:
            changes[name] = cleaned
            if field.may_be_none and isinstance(found, tuple) and len(cleaned) < len(found):
                refused[name] = "it lists one of them twice"
    if refused and "errors" in known:
        changes["errors"] = {**refused, **changes.get("errors", value.errors)}
    changes |= dict.fromkeys(refused)
    return replace(value, **changes) if changes else value


class _Field(NamedTuple):
    may_be_none: bool
    may_be_empty: bool
    bounds: Within
    at_most: str
    identifies: bool

    def problem(self, value: object) -> str:
        """Why it cannot be the value, or an empty text."""
        if value == "" and not self.may_be_empty:
            return "an empty text"
        if isinstance(value, str):
            return "" if self.may_be_empty or value.strip() else f"impossible value {value!r}"
        if isinstance(value, bool) or not isinstance(value, int | float | Spread):
            return ""
        numbers = [value.low, value.mean, value.high] if isinstance(value, Spread) else [value]
        possible = numbers == sorted(numbers) and all(self.bounds.least <= one <= self.bounds.most for one in numbers)
        return "" if possible else f"impossible value {value!r}"  # NaN is not possible


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
        at_most=next((extra.field for extra in extras if isinstance(extra, AtMost)), ""),
        identifies=any(isinstance(extra, Identity) for extra in extras),
    )
