"""The job's ``evaluate`` on all replicas and on one device, with the same weights."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import tensorflow as tf

from kdoctor_target.job.measures import numbers
from kdoctor_target.job.parts import describe
from kdoctor_target.job.trials import dataset

Facts = Dict[str, Any]


def final_batches(batch: int, replicas: int, model: Any) -> List[int]:
    """Sizes of a final batch to evaluate: a full one, and one that does not divide but leaves no replica empty."""
    uneven = [
        size for size in range(batch - 1, 0, -1) if size % replicas and (replicas - 1) * -(-size // replicas) < size
    ]
    return [batch, *uneven[:1]] if _takes_any(model) else [batch]


def _takes_any(model: Any) -> bool:
    """Whether the batch size is not part of the model's inputs."""
    try:
        shapes = [one.shape for one in tf.nest.flatten(model.inputs or [])]
    except AttributeError:  # of a subclass in Keras 3
        return True
    return all(not len(shape) or shape[0] is None for shape in shapes)


def evaluate(model: Any, batches: Sequence[Any], final: int, *, reverse: bool = False) -> Dict[str, Optional[float]]:
    """What ``evaluate`` reports for the batches, the last of which is cut to ``final`` examples.

    Args:
        model: a compiled copy.
        batches: full batches.
        final: examples in the final batch.
        reverse: reverse the order of the examples in each batch.
    """
    parts = [*batches[:-1], tf.nest.map_structure(lambda leaf: leaf[:final], batches[-1])]
    if reverse:
        parts = [tf.nest.map_structure(lambda leaf: leaf[::-1], part) for part in parts]
    return numbers(model.evaluate(dataset(parts), verbose=0, return_dict=True))


def leaf(batch: Any) -> Any:
    """The first array of a batch."""
    return tf.nest.flatten(batch)[0]


def compare(evaluated: Any, on_one_device: Any, final: int) -> Optional[Facts]:
    """The evaluation of the replicas and of one device; None if one device cannot evaluate, either.

    Args:
        evaluated: evaluates on the replicas.
        on_one_device: evaluates on one device, with the examples of each batch in reverse order if its argument is true.
        final: examples in the final batch.
    """
    try:
        reference, reordered = on_one_device(False), on_one_device(True)  # noqa: FBT003
    except Exception:
        return None
    facts: Facts = {"final_batch": final, "reference": reference, "reordered": reordered}
    try:
        return dict(facts, logs=evaluated())
    except Exception as error:
        return dict(facts, problem=describe(error))
