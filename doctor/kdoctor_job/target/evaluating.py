"""Compares what ``evaluate`` reports on all replicas with one device."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import tensorflow as tf

from kdoctor_job.target.batches import dataset, last_bit
from kdoctor_job.target.measures import differ, named_as, numbers
from kdoctor_job.target.parts import describe
from kdoctor_job.target.random_numbers import random_numbers_fixed
from kdoctor_job.target.trials import Trials

Facts = Dict[str, Any]


def final_batches(batch: int, replicas: int) -> List[int]:
    """Sizes of a final batch to evaluate: one that does not divide but leaves no replica empty, and a full one."""
    uneven = [
        size for size in range(batch - 1, 0, -1) if size % replicas and (replicas - 1) * -(-size // replicas) < size
    ]
    return [*uneven[:1], batch]


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


def compare_evaluations(trials: Trials, final: int) -> Facts:
    """``evaluate`` of the two copies, or only ``raises``: how it ends on one device.

    Args:
        trials: has both copies, with equal weights.
        final: examples in the final batch.
    """
    with random_numbers_fixed():  # a model may draw some at inference, too
        facts = _evaluations(trials, final)
        # Without true positives, a metric that divides by them shows nothing.
        if is_equal(facts) and 0 in facts["reference"].values():
            trials.reset(-1)
            facts = _evaluations(trials, final)
    return facts


def is_equal(facts: Facts) -> bool:
    """Whether an evaluation gave what one device gives."""
    return "reference" in facts and "problem" not in facts and not differ(facts["logs"], facts["reference"])


def _evaluations(trials: Trials, final: int) -> Facts:
    def alone(*, reverse: bool = False) -> Dict[str, Optional[float]]:
        return trials.apart(lambda: evaluate(trials.alone, trials.batches, final, reverse=reverse))

    try:
        facts: Facts = {"final_batch": final, "last_bit": last_bit(trials.alone), "reference": alone()}
    except Exception as error:
        return {"raises": describe(error)}
    try:
        facts["logs"] = named_as(evaluate(trials.mirrored, trials.batches, final), facts["reference"])
    except Exception as error:
        return dict(facts, problem=describe(error))
    if differ(facts["logs"], facts["reference"]):
        facts["reordered"] = alone(reverse=True)
    return facts
