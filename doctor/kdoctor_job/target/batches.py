"""The batches of a training: as a dataset, a share of each, and in another order."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import tensorflow as tf

from kdoctor_job.target.layers import layers_of


def dataset(batches: Sequence[Any], *, is_static: bool = True) -> Any:
    """The batches as a dataset, the last of which may be shorter.

    Args:
        batches: arrays, in any structure.
        is_static: whether its type has the size of a batch, if all have the same.
    """
    size, *others = map(len, tf.nest.flatten(batches[0]))
    if any(other != size for other in others):  # of data sets that were zipped after they were batched
        return tf.data.Dataset.zip(tf.nest.map_structure(lambda *parts: dataset(parts, is_static=is_static), *batches))
    joined = tf.nest.map_structure(lambda *parts: np.concatenate(parts), *batches)
    full = all(len(tf.nest.flatten(batch)[0]) == size for batch in batches)
    return tf.data.Dataset.from_tensor_slices(_tuples(joined)).batch(size, drop_remainder=full and is_static)


def _tuples(value: Any) -> Any:
    """Tuples in place of lists, which TensorFlow takes for one array; Keras does the same with the arguments of fit."""
    if isinstance(value, dict):
        return {name: _tuples(part) for name, part in value.items()}
    return tuple(map(_tuples, value)) if type(value) in (list, tuple) else value


def last_bit(model: Any) -> float:
    """The smallest relative change of an input that the least precise layer sees; 0 for what the input itself has."""
    bits = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
    return max([bits.get(getattr(layer, "compute_dtype", ""), 0.0) for layer in layers_of(model)], default=0.0)


def part_of(batch: Any, place: int, parts: int) -> Any:
    """One of ``parts`` equal shares of a batch."""
    return tf.nest.map_structure(lambda leaf: np.split(leaf, parts)[place] if parts > 1 else leaf, batch)


def reordered(batch: Any, order: int, bit: float) -> Any:
    """The examples in another order, and the inputs with another last bit, so that sums are rounded in another way.

    Args:
        batch: arrays, in any structure.
        order: which order; 0 changes nothing, and a negative number only the last bits.
        bit: the smallest relative change that the model sees, see :func:`last_bit`.
    """
    if not order:
        return batch
    numbers = np.random.RandomState(abs(order))
    sizes = sorted(set(map(len, tf.nest.flatten(batch))))
    indices = {size: numbers.permutation(size) if order > 0 else np.arange(size) for size in sizes}

    def moved(leaf: Any) -> Any:
        return leaf[indices[len(leaf)]]

    def changed(leaf: Any) -> Any:
        if not np.issubdtype(leaf.dtype, np.floating):
            return moved(leaf)
        up = numbers.choice([-1.0, 1.0], leaf.shape) * max(bit, np.finfo(leaf.dtype).eps)
        return (moved(leaf) * (1 + up)).astype(leaf.dtype)

    inputs, *others = batch if isinstance(batch, tuple) else (batch,)
    made = (tf.nest.map_structure(changed, inputs), *tf.nest.map_structure(moved, others))
    return made if isinstance(batch, tuple) else made[0]
