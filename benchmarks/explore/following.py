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
    """Value of each variable after ``fit``: weights, optimizer and metrics."""
    unlike: tuple[str, ...]
    """Variables that differ between replicas and do not read as their mean or sum."""
    predictions: Values
    """Before and after saving."""
    numbers: Values
    """What ``fit`` and ``evaluate`` reported."""


def follow(names: dict[str, Any], strategy: Any = None, inputs: Any = None) -> Followed:
    """Run the job, on one device or in the scope of a strategy.

    Args:
        names: the names that its script defines.
        strategy: the ``tf.distribute`` strategy.
        inputs: values in place of the script's.
    """
    keras.backend.clear_session()  # layers get the same names each time
    kept = names["inputs"]
    names["inputs"] = kept if inputs is None else inputs
    try:
        with TemporaryDirectory() as folder:
            return _followed(names, strategy, folder)
    finally:
        names["inputs"] = kept


def _followed(names: dict[str, Any], strategy: Any, folder: str) -> Followed:
    with strategy.scope() if strategy else nullcontext():
        model = names["build"]()
        seeds, examples = _seeds(model), count_examples(model)
        history = names["fit"](model, folder).history
        if any(not np.array_equal(before, after) for before, after in zip(seeds, _seeds(model), strict=True)):
            raise DrawsRandomNumbersError
        trained, variables = examples(), _variables(model)
        state = {name: variable.numpy() for name, variable in variables.items()}
        unlike = tuple(name for name, variable in variables.items() if strategy and not _is_alike(strategy, variable))
        numbers = {f"fit: {name}": np.asarray(values, float) for name, values in history.items()}
        numbers |= {f"evaluate: {name}": np.asarray(value) for name, value in names["evaluate"](model).items()}
        predictions = {"predict": names["predict"](model)}
        predictions["before saving"] = model.predict(names["inputs"], batch_size=16, verbose=0)
    # What was saved is loaded on one device, where it will be used.
    predictions["after loading"] = names["load"](model, folder)
    return Followed(trained, state, unlike, predictions, numbers)


def _variables(model: Any) -> dict[str, Any]:
    """Weights, and the variables of the optimizer and the metrics, by place and name."""
    optimizer = model.optimizer.variables
    optimizer = optimizer() if callable(optimizer) else optimizer
    every = [*model.weights, *optimizer, *(one for metric in model.metrics for one in metric.variables)]
    return {f"{place} {getattr(one, 'path', one.name)}": one for place, one in enumerate(every)}


def _seeds(model: Any) -> list[Any]:
    return [one.numpy() for one in model.variables if "seed_generator" in getattr(one, "path", one.name)]


def _is_alike(strategy: Any, variable: Any) -> bool:
    """Whether a variable has one value on all replicas, or reads as their mean or their sum."""
    inner = getattr(variable, "value", variable)
    inner = variable if callable(inner) else inner  # a method in Keras 2
    values = [one.numpy() for one in strategy.experimental_local_results(inner)]
    if values[0].dtype.kind != "f":
        return True
    read = variable.numpy()
    return any(np.allclose(read, value, 1e-4, 1e-6) for value in (np.mean(values, 0), np.sum(values, 0))) or all(
        np.allclose(value, values[0], 1e-4, 1e-6) for value in values
    )


def broken(names: dict[str, Any], strategy: Any, reference: Followed) -> str:
    """The first invariant that the job breaks on the replicas, in the order of the data's way; empty if none.

    Args:
        names: the names that its script defines.
        strategy: the strategy over the replicas.
        reference: the training on one device.
    """
    noise = _noise(names, reference)
    try:
        found = follow(names, strategy)
    except Exception as error:  # noqa: BLE001 - it trains on one device, so how it ends here is the finding
        return f"end: {type(error).__name__}: {' '.join(str(error).split())[-150:]}"
    return next(_breaks(reference, found, noise), "")


def _breaks(reference: Followed, found: Followed, noise: Followed) -> Iterator[str]:
    if found.examples != reference.examples:
        yield f"examples: {found.examples} of {reference.examples}"
    yield from (f"state: {name.partition(' ')[2]}" for name in _unequal(reference.state, found.state, noise.state))
    yield from (f"replicas: {name.partition(' ')[2]}" for name in found.unlike)
    saved = {"after loading": found.predictions["before saving"]}
    yield from (f"artefact: {name}" for name in _unequal(saved, found.predictions, noise.predictions))
    for kind in ("predictions", "numbers"):
        wanted, made, again = (getattr(one, kind) for one in (reference, found, noise))
        yield from (f"numbers: {name}" for name in _unequal(wanted, made, again))


def _noise(names: dict[str, Any], reference: Followed) -> Followed:
    """The training on one device with another last bit of the inputs, as the least precise layer has them."""
    inputs = names["inputs"]
    if inputs.dtype.kind != "f":
        return reference
    bits = np.random.default_rng(2).choice([-1, 1], inputs.shape)
    computed = keras.layers.Dense(1).compute_dtype  # by the policy that the script has set
    eps = 2.0**-8 if computed == "bfloat16" else max(np.finfo(computed).eps, np.finfo(inputs.dtype).eps)
    return follow(names, None, (inputs * (1 + bits * eps)).astype(inputs.dtype))


def _unequal(wanted: Values, found: Values, again: Values) -> Iterator[str]:
    for name, value in wanted.items():
        if name not in found or np.shape(found[name]) != np.shape(value):
            yield name
        elif np.asarray(value).dtype.kind in "fiub":
            size = np.linalg.norm(np.asarray(value, float)) or 1.0
            noise = np.linalg.norm(np.asarray(again.get(name, value), float) - value) / size
            if not np.linalg.norm(np.asarray(found[name], float) - value) / size <= max(LEAST, OF_ROUNDING * noise):
                yield name
