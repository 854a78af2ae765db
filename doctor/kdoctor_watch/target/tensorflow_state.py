"""Reads the copies of variables that ``tf.distribute`` keeps on each replica, on the device where they are.

The checksum of a copy is the sum of its bits as 64-bit integers, modulo 2**64. A change of one bit changes the sum by a
power of two, so that it is never missed. No copy of a variable is made: only a number per variable leaves the device.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from kdoctor_watch.target.state import Copy, Look, compare_values, names_of

_WORD_BYTES = 8


class TensorFlowState:
    """The variables of a model, each with its copies."""

    def __init__(self, variables: Sequence[Any], assigned: Collection[int]) -> None:
        """``assigned`` has the ids of the variables that layers assign themselves."""
        kept = [(variable, _copies(variable)) for variable in variables]
        kept = [(variable, copies) for variable, copies in kept if copies and _is_number(copies[0])]
        self._copies = [copies for _, copies in kept]
        self.names = names_of([variable for variable, _ in kept])
        self.replicas = max((len(copies) for copies in self._copies), default=1)
        self.mirrored = [len(copies) > 1 and not _differs_by_design(variable, assigned) for variable, copies in kept]
        self.devices = sorted({_device(copy) for copies in self._copies for copy in copies})
        self._places: dict[str, list[tuple[int, int]]] = {}
        for place, copies in enumerate(self._copies):
            for replica, copy in enumerate(copies):
                self._places.setdefault(_device(copy), []).append((place, replica))
        self._read = tf.function(self._checksums, autograph=False)

    def look(self) -> Look:
        """Read all copies."""
        found: list[list[Copy]] = [[Copy(0, finite=True)] * len(copies) for copies in self._copies]
        read = self._read()
        for device, places in self._places.items():
            sums, totals = (part.numpy() for part in read[device])
            for (place, replica), checksum, total in zip(places, sums, totals):
                # A sum of large values may overflow, so that only a suspicious one is read value by value.
                finite = np.isfinite(total) or tf.reduce_all(tf.math.is_finite(self._copies[place][replica]))
                found[place][replica] = Copy(int(checksum), bool(finite))
        return Look(self.names, self.mirrored, found)

    def describe(self, place: int, replica: int, other: int) -> dict[str, Any]:
        """How two copies differ, in numbers."""
        first, second = (self._copies[place][index].numpy() for index in (replica, other))
        return {**compare_values(first, second), "device": _device(self._copies[place][replica])}

    def _checksums(self) -> dict[str, tuple[Any, Any]]:
        """For each device the checksum and the sum of each copy on it."""
        found = {}
        for device, places in self._places.items():
            with tf.device(device):
                values = [self._copies[place][replica].read_value() for place, replica in places]
                found[device] = (tf.stack([_checksum(value) for value in values]), tf.stack(list(map(_total, values))))
        return found


def _checksum(value: Any) -> Any:
    if value.dtype == tf.bool:
        value = tf.cast(value, tf.uint8)
    per_word = _WORD_BYTES // value.dtype.size
    flat = tf.reshape(value, [-1])
    if per_word <= 1:  # 64 bits, or 128 bits, which become two words
        return tf.reduce_sum(tf.bitcast(flat, tf.int64))
    count = int(np.prod(value.shape))
    whole = count - count % per_word
    total = tf.zeros([], tf.int64)
    if whole:
        total += tf.reduce_sum(tf.bitcast(tf.reshape(flat[:whole], [-1, per_word]), tf.int64))
    if whole < count:
        rest = tf.concat([flat[whole:], tf.zeros([per_word - count + whole], value.dtype)], 0)
        total += tf.bitcast(rest, tf.int64)
    return total


def _total(value: Any) -> Any:
    """The sum of the values, which is not finite if one of them is not."""
    if not (value.dtype.is_floating or value.dtype.is_complex):
        return tf.zeros([], tf.float32)
    total = tf.reduce_sum(value)
    return tf.cast(tf.abs(total) if value.dtype.is_complex else total, tf.float32)


def _inner(variable: Any) -> Any:
    """TensorFlow's variable: Keras 3 wraps it, Keras 2 hands it out."""
    return variable if callable(getattr(variable, "value", None)) else getattr(variable, "value", None)


def _copies(variable: Any) -> list[Any]:
    """The variable on each replica; empty for what is not a variable with a known shape on its device."""
    inner = _inner(variable)
    copies = list(getattr(inner, "values", (inner,)))
    usable = all(isinstance(copy, tf.Variable) and copy.shape.is_fully_defined() for copy in copies)
    return copies if usable else []


def _is_number(copy: Any) -> bool:
    kinds = copy.dtype.is_floating or copy.dtype.is_integer or copy.dtype.is_complex or copy.dtype == tf.bool
    return bool(kinds) and copy.dtype.size <= 2 * _WORD_BYTES


def _differs_by_design(variable: Any, assigned: Collection[int]) -> bool:
    """Whether the values of replicas differ by design: a metric, or what a layer assigns without an aggregation.

    Keras 2 reads moving statistics with an aggregation, and Keras 3 takes those of the first replica.
    """
    inner = _inner(variable)
    if getattr(inner, "synchronization", None) == tf.VariableSynchronization.ON_READ:
        return True
    return id(variable) in assigned and getattr(inner, "aggregation", None) == tf.VariableAggregation.NONE


def _device(copy: Any) -> str:
    return str(copy.device)


def are_finite(reported: Sequence[Any]) -> list[bool]:
    """Whether each of these numbers is finite on all replicas, read with few operations and one transfer."""
    if all(isinstance(one, tf.Tensor) and not one.shape.rank and one.dtype.is_floating for one in reported):
        kinds = {one.dtype for one in reported}
        numbers = tf.stack(list(reported if len(kinds) == 1 else [tf.cast(one, tf.float32) for one in reported]))
    else:
        sums = [tf.reduce_sum(tf.stack([tf.cast(part, tf.float32) for part in _local(one)])) for one in reported]
        numbers = tf.stack(sums)
    return [bool(finite) for finite in tf.math.is_finite(numbers).numpy()]


def first_not_finite(named: dict[str, Any]) -> list[str]:
    """Names of the tensors (or lists of tensors) with a NaN or an infinity, read with one transfer."""
    flags = {}
    for name, value in named.items():
        parts = [part for part in _local(value) if part.dtype.is_floating or part.dtype.is_complex]
        if parts:
            flags[name] = tf.reduce_all([tf.reduce_all(tf.math.is_finite(part)) for part in parts])
    if not flags:
        return []
    read = tf.stack(list(flags.values())).numpy()
    return [name for name, finite in zip(flags, read) if not finite]


def _local(value: Any) -> list[Any]:
    found = []
    for part in getattr(value, "values", (value,)) if not isinstance(value, tf.IndexedSlices) else (value.values,):
        inner = part.values if isinstance(part, tf.IndexedSlices) else part
        found.append(tf.convert_to_tensor(inner))
    return found


def device_memory(devices: Sequence[str]) -> dict[str, int]:
    """Bytes that TensorFlow has allocated on each GPU."""
    found = {}
    for device in devices:
        kind, number = device.split(":")[-2:] if device.count(":") > 1 else ("", "")
        if kind == "GPU":
            found[f"GPU:{number}"] = int(tf.config.experimental.get_memory_info(f"GPU:{number}")["current"])
    return found


class BatchCounter:
    """Counts the batches that a dataset has produced, where they wait for the training."""

    def __init__(self, buffer: int) -> None:
        self._buffer = buffer
        with tf.init_scope(), tf.device("/CPU:0"):
            self._produced = tf.Variable(tf.zeros([], tf.int64), trainable=False, name="kdoctor_batches")

    def count(self, dataset: Any) -> Any:
        """The same dataset, counted."""

        def counted(*batch: Any) -> Any:
            with tf.control_dependencies([self._produced.assign_add(1)]):
                kept = tf.nest.map_structure(tf.identity, batch, expand_composites=True)
            return kept if len(batch) > 1 else kept[0]

        return dataset.map(counted).prefetch(self._buffer)

    @property
    def produced(self) -> int:
        """Batches so far."""
        return int(self._produced.numpy())


def is_dataset(data: Any) -> bool:
    """Whether it is a ``tf.data.Dataset``."""
    return isinstance(data, tf.data.Dataset)


class Summaries:
    """Writes for TensorBoard, whose package need not be installed: ``tf.summary.scalar`` and ``text`` are in it."""

    def __init__(self, folder: str) -> None:
        self._writer = tf.summary.create_file_writer(folder, filename_suffix=".kdoctor")

    def scalar(self, name: str, value: float, step: int) -> None:
        """A number at a step."""
        self._write("scalars", name, tf.constant(value, tf.float32), step)

    def text(self, name: str, value: str, step: int) -> None:
        """A text at a step."""
        self._write("text", name, tf.constant(value), step)
        self._writer.flush()

    def _write(self, plugin: str, name: str, value: Any, step: int) -> None:
        metadata = tf.compat.v1.SummaryMetadata()
        metadata.plugin_data.plugin_name = plugin
        with self._writer.as_default():
            tf.summary.write(name, value, step=step, metadata=metadata)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
