"""Reads the copies of variables that JAX keeps on each device (``keras.distribution``), where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kdoctor_watch.target.state import Copy, Look, compare_values, names_of

_WORDS = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32}


class JaxState:
    """The variables of a model on the JAX backend, each with its copies.

    Shards of different parts of an array are compared with those of the same part only.
    """

    def __init__(self, variables: Sequence[Any]) -> None:
        self._variables = [variable for variable in variables if _is_number(variable.value)]
        self.names = names_of(self._variables)
        parts = [_copies(variable.value) for variable in self._variables]
        self.replicas = max((len(copies) for copies in parts), default=1)
        self.mirrored = [len(copies) > 1 for copies in parts]
        self.devices = sorted({str(copy.device) for copies in parts for copy in copies})
        self._sums = jax.jit(lambda values: [(_checksum(value), _is_finite(value)) for value in values])

    def look(self) -> Look:
        """Read all copies."""
        parts = [_copies(variable.value) for variable in self._variables]
        by_device: dict[Any, list[Any]] = {}
        for place, copies in enumerate(parts):
            for replica, copy in enumerate(copies):
                by_device.setdefault(copy.device, []).append((place, replica, copy.data))
        found = [[Copy(0, finite=True)] * len(copies) for copies in parts]
        read = {device: self._sums([data for _, _, data in items]) for device, items in by_device.items()}
        for device, items in by_device.items():
            for (place, replica, _), (checksum, finite) in zip(items, jax.device_get(read[device])):
                found[place][replica] = Copy(int(checksum), bool(finite))
        return Look(self.names, self.mirrored, found)

    def describe(self, place: int, replica: int, other: int) -> dict[str, Any]:
        """How two copies differ, in numbers."""
        copies = _copies(self._variables[place].value)
        first, second = (np.asarray(copies[index].data) for index in (replica, other))
        return {**compare_values(first, second), "device": str(copies[replica].device)}


def _copies(value: Any) -> list[Any]:
    """The shards with the same part of the array as the first one of this process."""
    shards = list(value.addressable_shards)
    return [shard for shard in shards if shard.index == shards[0].index] if shards else []


def _is_number(value: Any) -> bool:
    return isinstance(value, jax.Array) and value.size > 0 and value.dtype.itemsize in _WORDS and value.dtype != bool


def _checksum(value: Any) -> Any:
    words = jax.lax.bitcast_convert_type(value, _WORDS[value.dtype.itemsize])
    return jnp.sum(words.astype(jnp.uint32), dtype=jnp.uint32)


def _is_finite(value: Any) -> Any:
    return jnp.all(jnp.isfinite(value)) if jnp.issubdtype(value.dtype, jnp.inexact) else jnp.array(True)  # noqa: FBT003


def are_finite(reported: Sequence[Any]) -> list[bool]:
    """Whether each of these numbers is finite, read with one transfer."""
    return [bool(finite) for finite in jax.device_get([_is_finite(jnp.asarray(one)) for one in reported])]


def first_not_finite(named: dict[str, Any]) -> list[str]:
    """Names of the arrays (or trees of arrays) with a NaN or an infinity, read with one transfer."""
    flags = {name: [_is_finite(jnp.asarray(one)) for one in jax.tree.leaves(value)] for name, value in named.items()}
    return [name for name, finite in jax.device_get(flags).items() if not all(finite)]


def local_devices() -> list[str]:
    """The devices of this process, named as TensorFlow names them: ``GPU:0``."""
    return [f"{device.platform.upper()}:{place}" for place, device in enumerate(jax.local_devices())]


def device_memory() -> dict[str, int]:
    """Bytes that JAX has allocated on each GPU."""
    found = {}
    for name, device in zip(local_devices(), jax.local_devices()):
        stats = device.memory_stats() if name.startswith("GPU:") else None
        if stats and "bytes_in_use" in stats:
            found[name] = int(stats["bytes_in_use"])
    return found
