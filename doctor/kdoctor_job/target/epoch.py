"""One epoch of ``fit`` on the data as the job gives it, in which every example must be trained once.

The other trainings use batches that were read before. So they do not show what ``fit`` does with the data itself.
"""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import tensorflow as tf

from kdoctor_job.target.parts import keras_of


class Epoch(NamedTuple):
    """The first batches of the data, in the form in which the job has it."""

    value: Any
    more: Dict[str, Any]
    """Arguments of ``fit`` that belong to it."""
    given: Callable[[], int]
    """Number of its examples, after the training."""


def first_batches(value: Any, kind: str, sizes: List[int], size: int, *, endless: bool) -> Epoch:
    """An epoch of as many batches as there are sizes.

    Args:
        value: new data of that kind; a generator is consumed.
        kind: as in ``JobData``.
        sizes: examples of each batch.
        size: the batch size of arrays.
        endless: whether the job ends an epoch by ``steps_per_epoch``.
    """
    if endless:
        more = {"batch_size": size} if kind == "arrays" else {}
        return Epoch(value, {"steps_per_epoch": len(sizes), **more}, lambda: sum(sizes))
    if kind == "arrays":
        kept = tf.nest.map_structure(lambda leaf: leaf[: sum(sizes)], value)
        return Epoch(kept, {"batch_size": size}, lambda: sum(sizes))
    if kind == "tf.data":
        return Epoch(value.take(len(sizes)), {}, lambda: sum(sizes))
    if kind == "PyDataset":
        return Epoch(_first_items(value, len(sizes)), {}, lambda: sum(sizes))
    numbers = iter(sizes)
    seen: List[int] = []

    def batches() -> Iterator[Any]:
        for batch in itertools.islice(value, len(sizes)):
            seen.append(next(numbers))
            yield batch

    made = batches()
    return Epoch(made, {}, lambda: sum(seen) + sum(next(numbers) for _ in made))


def _first_items(value: Any, length: int) -> Any:
    base: Any = next(kind for kind in type(value).__mro__ if kind.__name__ in ("PyDataset", "Sequence"))

    class First(base):  # type: ignore[misc]  # Keras has no types here
        def __len__(self) -> int:
            return length

        def __getitem__(self, index: int) -> Any:
            return value[index]

    return First()


def fit(model: Any, epoch: Epoch, more: Dict[str, Any]) -> None:
    """Train the model for the epoch, as the job calls ``fit``."""
    parts: Tuple[Any, ...] = epoch.value if isinstance(epoch.value, tuple) else (epoch.value,)
    named = dict(zip(("x", "y", "sample_weight"), parts))
    model.fit(**named, **epoch.more, **more, epochs=1, verbose=0, shuffle=False)


def count_examples(model: Any) -> Callable[[], int]:
    """Count the examples that the model's ``train_step`` gets, over all replicas. To be called in the scope."""
    count = tf.Variable(
        0,
        dtype=tf.int64,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
    step = model.train_step

    def counting(data: Any) -> Any:
        first = tf.nest.flatten(keras_of(model).utils.unpack_x_y_sample_weight(data)[0])[0]
        count.assign_add(tf.cast(tf.shape(first)[0], tf.int64))
        return step(data)

    model.train_step = counting
    return lambda: int(count.numpy())
