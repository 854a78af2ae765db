"""The state of a job: every variable of the model and its optimizer, and how two states are compared."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from itertools import chain
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

from kdoctor_job.target.measures import BEYOND_ROUNDING

_LEAST = 1e-6
"""Differences of a variable that count as rounding in any case, relative to its change."""

_NUMBER = re.compile(r"_\d+$")
State = Dict[str, Any]


def state_of(model: Any) -> State:
    """Every variable of the model and its optimizer, but those of metrics, as it is read and saved.

    That is the value of one replica, or of BatchNormalization in Keras 2 the mean.
    """
    found = {name: np.asarray(one.numpy()) for name, one in _variables(model).items()}
    # To NumPy, bfloat16 and float8 are not numbers.
    return {name: one if one.dtype.kind in "biufc" else one.astype("float32") for name, one in found.items()}


def _variables(model: Any) -> Dict[str, Any]:
    left_out = {id(one) for metric in model.metrics for one in metric.variables}
    found: Dict[str, Any] = {}
    optimized = ((part.name, one) for part in filter(steps_of, optimizers_of(model)) for one in _variables_of(part))
    for part, one in (*(("", one) for one in model.variables), *optimized):
        if id(one) not in left_out:
            left_out.add(id(one))
            name = _path(one, part)
            found[f"{name} ({len(found)})" if name in found else name] = one
    return found


def _path(variable: Any, optimizer: str) -> str:
    """Its path. A variable of an optimizer may have none outside a scope, and is ``variable_1`` after loading."""
    path = str(getattr(variable, "path", variable.name))
    return f"{optimizer}/{_NUMBER.sub('', path)}" if optimizer and "/" not in path else path


def optimizers_of(model: Any) -> List[Any]:
    """The optimizer of ``compile``, and those that the model or a part of it has as attributes, as a GAN does."""
    held = chain.from_iterable(vars(part).values() for part in model._flatten_layers())  # noqa: SLF001 - Keras has no public way
    single = chain.from_iterable(
        one.values() if isinstance(one, dict) else one if isinstance(one, (list, tuple)) else [one] for one in held
    )
    found = {id(one): one for one in single if hasattr(one, "apply_gradients") and hasattr(one, "iterations")}
    return [one for one in found.values() if not isinstance(one, type)]


def steps_of(optimizer: Any) -> int:
    """Batches that an optimizer was applied to. Its variables count only after the first."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    # With gradient_accumulation_steps, ``iterations`` does not count each batch.
    return int(np.asarray(getattr(optimizer, "_iterations", optimizer.iterations).numpy()))


def _variables_of(optimizer: Any) -> Any:
    return optimizer.variables() if callable(optimizer.variables) else optimizer.variables


def seeds_of(model: Any) -> List[Any]:
    """The states of the model's generators of random numbers; Keras 2 has none that are variables."""
    return [one for name, one in _variables(model).items() if is_seed(name)]


def is_seed(name: str) -> bool:
    """Whether a variable is the state of a generator, by the name that ``keras.random.SeedGenerator`` gives it."""
    return name.partition(" (")[0].endswith("seed_generator_state")


@contextlib.contextmanager
def state_kept(part: Any) -> Iterator[None]:
    """Restore the variables of a layer or model, except those of generators. What a layer remembers is not random."""
    kept = [(one, one.numpy()) for one in part.variables if not is_seed(str(getattr(one, "path", one.name)))]
    try:
        yield
    finally:
        for one, value in kept:
            one.assign(value)


def unequal(saved: State, loaded: State) -> List[str]:
    """Variables that are missing after loading, or have other bits."""
    found = _matched(saved, loaded)
    return [
        name
        for name, one in saved.items()
        if found[name] is None or not np.array_equal(one, found[name], equal_nan=_is_real(one))
    ]


def apart(before: State, wanted: State, perturbed: State, found: State) -> List[str]:
    """Variables that training did not move from ``before`` to ``wanted``, but to other values.

    A difference counts if it exceeds ten times the one of ``perturbed``, which the last bit of the inputs made. States
    of random number generators are not compared.
    """
    finite = [name for name, one in wanted.items() if _is_real(one) and np.isfinite(one).all()]
    changes = {name: _size(wanted[name] - before[name]) if name in before else 0.0 for name in finite}
    kinds = {name: kind for name, (kind, *_) in zip(wanted, _keys(wanted))}
    ways: Dict[str, float] = {}
    for name, change in changes.items():
        ways[kinds[name]] = max(change, ways.get(kinds[name], 0.0))
    ours, others = _matched(wanted, found), _matched(wanted, perturbed)

    def is_equal(name: str, one: Any) -> bool:
        other = ours[name]
        if name not in changes or other is None:
            return other is not None and np.array_equal(one, other, equal_nan=_is_real(one))
        noise = 0.0 if others[name] is None else _size(one - others[name])
        return _size(one - other) <= max(BEYOND_ROUNDING * noise, _LEAST * max(changes[name], ways[kinds[name]] / 10))

    return [name for name, one in wanted.items() if not is_seed(name) and not is_equal(name, one)]


def _matched(wanted: State, found: State) -> Dict[str, Any]:
    """What was found for each name of ``wanted``, or None.

    Loading gives layers other paths. So variables are matched by the last word of their names, their shape and order.
    """
    keyed = dict(zip(_keys(found), found.values()))
    return {name: keyed.get(key) for name, key in zip(wanted, _keys(wanted))}


def _keys(state: State) -> List[Tuple[Any, ...]]:
    known: Counter[Tuple[Any, ...]] = Counter()
    keys: List[Tuple[Any, ...]] = []
    for name, array in state.items():
        words = re.split("[/_]", name.partition(" (")[0])
        kind = words[-1], array.shape
        keys.append((*kind, known[kind]))
        known[kind] += 1
    return keys


def _is_real(array: Any) -> bool:
    return bool(array.dtype.kind == "f")


def _size(array: Any) -> float:
    return float(np.sqrt(np.mean(np.square(array.astype("float64"))))) if array.size else 0.0
