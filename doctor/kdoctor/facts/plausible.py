"""Values that cannot be are treated as not read: a temperature of 0 K does not show that a GPU is cool.

Negative counts and sizes, empty texts, and zero where a working device has more become None. A group that keeps the
errors of its calls (``errors``) names the value there.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import UnionType
from typing import Any, TypeVar

from kdoctor.facts.gpus import Gpu, Gpus
from kdoctor.facts.sampling import Spread

T = TypeVar("T")

_SIGNED = frozenset(
    {
        "temperature_margin_c",
        "temperature_slowdown_margin_c",
        "temperature_shutdown_margin_c",
        "clock_offset_s",
        "exit_code",
        "losses",
        "reference_losses",
        "own_losses",
    }
)
"""Fields that may be negative."""

_POSITIVE = frozenset(
    {
        *("memory_total_bytes", "bar1_total_bytes", "cpus", "cpu_limit", "replicas", "port"),
        *("pcie_generation", "pcie_generation_max", "pcie_generation_gpu_max", "pcie_width", "pcie_width_max"),
        *("link_width", "link_width_max", "slot_width_max", "rate_gbits", "lanes", "mtu", "speed_gbs"),
        *("enforced_power_limit_w", "default_power_limit_w", "temperature_slowdown_c", "temperature_shutdown_c"),
        *("temperature_c", "clock_sm_mhz", "clock_sm_max_mhz", "clock_memory_mhz", "clock_memory_max_mhz"),
    }
)
"""Fields that are more than 0 on every working device."""

_MAY_BE_ZERO = frozenset({("RdmaDevice", "link_width"), ("RdmaDevice", "link_width_max")})
"""Virtual functions have a link without lanes."""

_MAY_BE_EMPTY = frozenset(
    {
        *(
            "error",
            "error_message",
            "error_type",
            "failure",
            "hangs",
            "invalid",
            "load_error",
            "malformed",
            "not_compared",
        ),
        *("not_run", "problem", "skip_reason", "unknown_reason", "unread", "unreadable", "version_error"),
        *("scale_hidden", "stacks", "stderr_tail", "value"),
    }
)
"""Reasons and texts whose emptiness says something: an exception may have no message, but there was one."""

_MOST = 2.0**60
"""No count, size or time is larger."""

_LARGEST: Mapping[str, float] = {
    **dict.fromkeys(("pcie_generation", "pcie_generation_max", "pcie_generation_gpu_max"), 16),
    **dict.fromkeys(("pcie_width", "pcie_width_max", "link_width", "link_width_max", "slot_width_max"), 64),
    **dict.fromkeys(("temperature_c", "temperature_margin_c", "temperature_slowdown_c", "fan_speed_percent"), 1000),
    "acs_control": 0xFFFF,
    "port": 0xFFFF,
}


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
    for name, may_be_none in _fields(type(value)):
        found = getattr(value, name)
        if found is None or isinstance(found, bool):
            continue
        if isinstance(found, int | float | str):
            if may_be_none and not _is_possible(type(value).__name__, name, found):
                changes[name] = None
                impossible[name] = f"impossible value {found!r}" if found != "" else "an empty text"
        elif may_be_none and isinstance(found, Spread) and not _is_possible_spread(name, found):
            changes[name] = None
        elif (cleaned := _without(found)) is not found:
            changes[name] = cleaned
    if impossible and "errors" in changes.keys() | {name for name, _ in _fields(type(value))}:
        changes["errors"] = {**impossible, **changes.get("errors", value.errors)}
    return replace(value, **changes) if changes else value


def _is_possible(kind: str, name: str, value: float | str) -> bool:
    if isinstance(value, str):
        return bool(value.strip()) or name in _MAY_BE_EMPTY
    if not math.isfinite(value) or abs(value) > _LARGEST.get(name, _MOST):
        return False
    if name in _SIGNED:
        return True
    return value > 0 if name in _POSITIVE and (kind, name) not in _MAY_BE_ZERO else value >= 0


def _is_possible_spread(name: str, spread: Spread) -> bool:
    values = (spread.low, spread.mean, spread.high)
    return all(math.isfinite(value) and abs(value) <= _MOST and (value >= 0 or name in _SIGNED) for value in values)


_known: dict[type[Any], tuple[tuple[str, bool], ...]] = {}


def _fields(kind: type[Any]) -> tuple[tuple[str, bool], ...]:
    """The fields of a dataclass, and whether each may be None."""
    if kind not in _known:
        hints = typing.get_type_hints(kind)
        _known[kind] = tuple((field.name, _may_be_none(hints[field.name])) for field in fields(kind) if field.init)
    return _known[kind]


def _may_be_none(hint: Any) -> bool:
    is_union = isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union
    return is_union and type(None) in typing.get_args(hint)
