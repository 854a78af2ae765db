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
from kdoctor.facts.gpus import Gpu, GpuPair, Gpus
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
    devices = _distinct(gpus.devices)[:LARGEST_MACHINE]
    pairs = _agreeing(gpus.pairs, {gpu.index for gpu in devices})
    if len(devices) == len(gpus.devices):
        return gpus if len(pairs) == len(gpus.pairs) else replace(gpus, pairs=pairs)
    return replace(gpus, devices=devices, pairs=pairs, count=max(gpus.count or 0, len(gpus.devices)))


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
            spread = (found.low, found.mean, found.high)
            if not all(map(field.allows, spread)) or list(spread) != sorted(spread):
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
