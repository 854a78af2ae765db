"""What a look at the variables of a training returns, on any backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Copy(NamedTuple):
    """A copy of a variable on one replica: its checksum, and whether all its values are finite."""

    checksum: int
    finite: bool


class Look(NamedTuple):
    """All copies of the variables that were read at once: for each variable one copy per replica."""

    names: list[str]
    mirrored: list[bool]
    """Whether the copies of a variable should be equal."""
    copies: list[list[Copy]]


def different(look: Look) -> list[tuple[int, int, int]]:
    """Place of the variable, the replica that differs, and the replica that it was compared with.

    The checksum that most replicas have counts as the right one; of two replicas, the first one's.
    """
    found = []
    for place, copies in enumerate(look.copies):
        sums = [copy.checksum for copy in copies]
        if look.mirrored[place] and len(set(sums)) > 1:
            right = max(sums, key=lambda one: (sums.count(one), -sums.index(one)))
            found += [(place, replica, sums.index(right)) for replica, one in enumerate(sums) if one != right]
    return found


def not_finite(look: Look) -> list[tuple[int, int]]:
    """Place of each variable with a NaN or an infinity, and the first replica that holds it."""
    bad = ([replica for replica, copy in enumerate(copies) if not copy.finite] for copies in look.copies)
    return [(place, replicas[0]) for place, replicas in enumerate(bad) if replicas]


def compare_values(values: Any, others: Any) -> dict[str, Any]:
    """How two copies of a variable differ."""
    values, others = np.ascontiguousarray(values).reshape(-1), np.ascontiguousarray(others).reshape(-1)
    size = values.dtype.itemsize
    unequal = np.any(values.view(np.uint8).reshape(-1, size) != others.view(np.uint8).reshape(-1, size), axis=1)
    with np.errstate(all="ignore"):
        gaps = np.abs(values[unequal].astype(np.float64) - others[unequal].astype(np.float64))
    largest = float(np.max(gaps)) if gaps.size and np.all(np.isfinite(gaps)) else None
    return {"values": int(np.count_nonzero(unequal)), "of": int(values.size), "largest": largest}


def each_once(variables: Sequence[Any]) -> list[Any]:
    """The variables without repetitions, in order."""
    seen: set[int] = set()
    return [variable for variable in variables if not (id(variable) in seen or seen.add(id(variable)))]  # type: ignore[func-returns-value]


def names_of(variables: Sequence[Any]) -> list[str]:
    """Names as the user's tools show them: Keras 3 has paths. Repeated ones are numbered."""
    names = [str(getattr(variable, "path", "") or getattr(variable, "name", "variable")) for variable in variables]
    counts = Counter(names)
    return [f"{name} (variable {place})" if counts[name] > 1 else name for place, name in enumerate(names)]


def variables_of(model: Any) -> tuple[list[Any], set[int]]:
    """The variables of a model and its optimizer, each once, and the ids of those that layers assign themselves."""
    optimizer = getattr(model, "optimizer", None)
    found = getattr(optimizer, "variables", None) or []
    own: Any = found() if callable(found) else found  # a method in tf_keras
    variables = each_once([*model.variables, *own])
    return variables, {id(variable) for variable in model.non_trainable_variables}


def are_finite(reported: Sequence[Any]) -> list[bool]:
    """Whether each of these numbers, which are in no framework's memory, is finite."""
    return [bool(np.all(np.isfinite(one))) for one in reported]


def first_not_finite(named: dict[str, Any]) -> list[str]:
    """Names of the arrays with a NaN or an infinity."""
    return [name for name, value in named.items() if not np.all(np.isfinite(value))]
