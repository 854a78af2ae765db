"""Follows a job on one device and on two replicas, and compares what the invariants name.

Preflight trains copies of a model with its own calls of ``fit``. This judges how the job itself calls ``fit``,
``evaluate`` and ``predict``, with its callbacks, its form of data and its way to save.
"""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
from benchmarks.explore.drawing import keras

from kdoctor_job.target.epoch import count_examples
from kdoctor_job.target.rows import shake
from kdoctor_job.target.states import seeds_of, state_of
from kdoctor_job.target.training import of_one_replica

LEAST = 1e-4
"""A relative difference below which two numbers are equal, if rounding makes less."""
OF_ROUNDING = 10
"""What a difference must exceed, in times of the one that another last bit of the inputs makes."""


class DrawsRandomNumbersError(Exception):
    """The layers of the job draw random numbers, which differ between replicas by design."""


Values: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Followed:
    """What was read about one training."""

    examples: int
    """Rows that ``train_step`` got, over all replicas."""
    state: Values
    """Value of each variable of the model and its optimizer after ``fit``."""
    unlike: tuple[str, ...]
    """Variables that differ between replicas and do not read as their mean or sum."""
    predictions: Values
    """Before and after saving."""
    numbers: Values
    """What ``fit`` and ``evaluate`` reported."""


def follow(names: dict[str, Any], strategy: Any = None, *, shaken: bool = False) -> Followed:
    """Run the job, on one device or in the scope of a strategy.

    Args:
        names: the names that its script defines.
        strategy: the ``tf.distribute`` strategy.
        shaken: whether the last bit of the inputs differs.
    """
    keras.backend.clear_session()  # layers get the same names each time
    with TemporaryDirectory() as folder:
        with strategy.scope() if strategy else nullcontext():
            model = names["build"]()
            if shaken:
                shake(model)
            seeds, examples = _seeds(model), count_examples(model)
            history = names["fit"](model, folder).history
            if any(not np.array_equal(before, after) for before, after in zip(seeds, _seeds(model), strict=True)):
                raise DrawsRandomNumbersError
            trained, state = examples(), state_of(model)
            unlike = of_one_replica(strategy, model.weights) if strategy else []
            numbers = {f"fit: {name}": np.asarray(values, float) for name, values in history.items()}
            numbers |= {f"evaluate: {name}": np.asarray(value) for name, value in names["evaluate"](model).items()}
            predictions = {"predict": names["predict"](model)}
            predictions["before saving"] = model.predict(names["inputs"], batch_size=16, verbose=0)
        # What was saved is loaded on one device, where it will be used.
        predictions["after loading"] = names["load"](model, folder)
    return Followed(trained, state, tuple(unlike), predictions, numbers)


def _seeds(model: Any) -> list[Any]:
    return [one.numpy() for one in seeds_of(model)]


def broken(names: dict[str, Any], strategy: Any, reference: Followed) -> str:
    """The first invariant that the job breaks on the replicas, in the order of the data's way; empty if none.

    Args:
        names: the names that its script defines.
        strategy: the strategy over the replicas.
        reference: the training on one device.
    """
    noise = follow(names, shaken=True)
    try:
        found = follow(names, strategy)
    except Exception as error:  # noqa: BLE001 - it trains on one device, so how it ends here is the finding
        return f"end: {type(error).__name__}: {' '.join(str(error).split())[-150:]}"
    return next(_breaks(reference, found, noise), "")


def _breaks(reference: Followed, found: Followed, noise: Followed) -> Iterator[str]:
    if found.examples != reference.examples:
        yield f"examples: {found.examples} of {reference.examples}"
    yield from (f"state: {name}" for name in _unequal(reference.state, found.state, noise.state))
    yield from (f"replicas: {name}" for name in found.unlike)
    saved = {"after loading": found.predictions["before saving"]}
    yield from (f"artefact: {name}" for name in _unequal(saved, found.predictions, noise.predictions))
    for kind in ("predictions", "numbers"):
        wanted, made, again = (getattr(one, kind) for one in (reference, found, noise))
        yield from (f"numbers: {name}" for name in _unequal(wanted, made, again))


def _unequal(wanted: Values, found: Values, again: Values) -> Iterator[str]:
    for name, value in wanted.items():
        if name not in found or np.shape(found[name]) != np.shape(value):
            yield name
        elif np.asarray(value).dtype.kind in "fiub":
            size = np.linalg.norm(np.asarray(value, float)) or 1.0
            noise = np.linalg.norm(np.asarray(again.get(name, value), float) - value) / size
            if not np.linalg.norm(np.asarray(found[name], float) - value) / size <= max(LEAST, OF_ROUNDING * noise):
                yield name
