"""Differences between trainings: of weights, in units of how far training moved them, and of reported numbers."""

from __future__ import annotations

import math
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

Logs = Mapping[str, Optional[float]]
"""Numbers that ``fit`` or ``evaluate`` reports, by their names; None for one that is not finite."""

SMALLEST_CHANGE = 0.1
"""Smaller changes of a variable, as shares of the largest change of any, count as this much: a bias in front of a
BatchNormalization changes by rounding only."""
BEYOND_ROUNDING = 10.0
"""A difference of at most this many times that of another order of the examples is explained by rounding."""
TOLERANCE = 0.01
"""Larger differences with the job's own optimizer are not rounding, unless another order of the examples makes them."""
UNCLEAR = 0.1
"""A variable that rounding changes by more than this share of its way shows nothing."""
MOSTLY = 0.5
"""If rounding or random numbers decide a larger share of the weights, they show nothing."""
QUIET = 1e-3
"""Smaller differences are not examined further, and larger ones of copies in float64 are not rounding."""


class Difference(NamedTuple):
    """How much the weights of all replicas differ from one device's."""

    deviation: float
    """Largest one of the variables that rounding does not decide; NaN if there is one."""
    noise: float
    """Largest difference that another order of the examples makes on one device."""
    rounded: List[str]
    """Variables whose difference rounding explains."""
    rounded_share: float
    """The share of the weights in those that differ by more than ``UNCLEAR``."""


def largest(reference: Sequence[Any], copies: Sequence[Sequence[Any]]) -> Any:
    """Largest absolute difference of each variable from its copies; NaN if there is one."""
    return np.array([max_or_nan([_most(one, other) for other in others]) for one, others in zip(reference, copies)])


def typical(reference: Sequence[Any], copies: Sequence[Sequence[Any]]) -> Any:
    """Root mean square of the difference of each variable from the copy that differs most.

    An optimizer that divides by the gradient's size (Adam) turns rounding into a full step where the gradient is about
    zero. That happens to single elements, which count little here.
    """
    return np.array([max_or_nan([_rms(one, other) for other in others]) for one, others in zip(reference, copies)])


def compare(  # noqa: PLR0913 - of several trainings
    names: Sequence[str],
    started: Sequence[Any],
    reference: Sequence[Any],
    copies: Sequence[Sequence[Any]],
    reordered: Sequence[Sequence[Any]],
    *,
    kinds: Sequence[str] = (),
    limit: float = TOLERANCE,
) -> Optional[Difference]:
    """The difference of all replicas from one device; None if no weight changes there, or one is not finite.

    Args:
        names: of the variables.
        started: the weights before the training.
        reference: the weights of one device.
        copies: each variable's copy on each replica.
        reordered: the weights of one device after trainings with another order of the examples in each batch, if any.
        kinds: of the variables, see :func:`scale_of`; none if all are of one kind.
        limit: the largest difference that counts as equal.
    """
    scale = scale_of(started, reference, kinds=kinds)
    if scale is None:
        return None
    apart = typical(reference, copies) / scale
    others = [typical(reference, [[one] for one in weights]) / scale for weights in reordered]
    noise = np.max(others, axis=0) if others else np.zeros(len(apart))
    rounded = (noise * BEYOND_ROUNDING >= apart) & (apart > limit)
    sizes = np.array([np.size(one) for one in reference])
    kept = apart[~rounded]
    return Difference(
        deviation=max_or_nan(kept) if kept.size else 0.0,
        noise=max_or_nan(noise),
        rounded=[name for name, is_rounded in zip(names, rounded) if is_rounded],
        rounded_share=float(sizes[rounded & (apart > UNCLEAR)].sum() / sizes.sum()),
    )


def scale_of(
    started: Sequence[Any], reference: Sequence[Any], measure: Any = typical, kinds: Sequence[str] = ()
) -> Any:
    """How far each variable moved; None if none did, or one is not finite.

    A variable that the job assigns has another size than weights. So ``SMALLEST_CHANGE`` holds for those of one kind.
    """
    changes = measure(started, [[one] for one in reference])
    way = max_or_nan(changes)
    if not way or not math.isfinite(way):
        return None
    labels = np.array(kinds or [""] * len(changes))
    ways = np.array([np.max(changes, where=labels == kind, initial=0.0) for kind in labels])
    return np.maximum(changes, SMALLEST_CHANGE * np.where(ways, ways, way))


def stretch(started: Sequence[Any], reference: Sequence[Any], other: Sequence[Any]) -> Optional[float]:
    """How many times as far the weights moved as those of the reference, in its direction; None if those did not.

    Random numbers that differ from step to step change it less than any single weight.
    """
    ways = [_floats(one) - _floats(start) for start, one in zip(started, reference)]
    others = [_floats(one) - _floats(start) for start, one in zip(started, other)]
    length = sum(float(np.sum(way * way)) for way in ways)
    found = sum(float(np.sum(way * one)) for way, one in zip(ways, others)) / length if length else math.nan
    return found if math.isfinite(found) else None


def max_or_nan(values: Any) -> float:
    """The largest value; NaN if there is one, 0 if there are none."""
    return float(np.max(values)) if len(values) else 0.0


def _most(one: Any, other: Any) -> float:
    apart = np.abs(_floats(one) - _floats(other))
    return float(np.max(apart)) if apart.size else 0.0


def _rms(one: Any, other: Any) -> float:
    apart = _floats(one) - _floats(other)
    return float(np.sqrt(np.mean(apart * apart))) if apart.size else 0.0


def _floats(value: Any) -> Any:
    return np.asarray(value, "float64")


def numbers(logs: Optional[Mapping[str, Any]]) -> Dict[str, Optional[float]]:
    """The numbers that ``fit`` or ``evaluate`` reports, by their names; None for NaN and infinity."""
    found: Dict[str, Optional[float]] = {}
    for name, value in (logs or {}).items():
        array = np.asarray(value)
        if array.dtype.kind in "fiub" and array.size:
            number = float(np.mean(array))
            found[str(name)] = number if math.isfinite(number) else None
    return found


def named_as(logs: Logs, others: Mapping[str, Any]) -> Dict[str, Optional[float]]:
    """The numbers with the others' names, if the names differ only by what Keras appends to those it makes up."""

    def key(name: str) -> Tuple[str, int]:
        base, number = re.fullmatch(r"(.*?)(?:_(\d+))?", name, re.DOTALL).groups()  # type: ignore[union-attr]
        return base, int(number or 0)

    mine, theirs = sorted(logs, key=key), sorted(others, key=key)
    if [key(name)[0] for name in mine] != [key(name)[0] for name in theirs]:
        return dict(logs)
    return {other: logs[name] for name, other in zip(mine, theirs)}


def differ(logs: Logs, others: Logs) -> bool:
    """Whether reported numbers differ by more than ``QUIET`` of the larger one."""
    logs = named_as(logs, others)
    return logs.keys() != others.keys() or not all(
        one is not None and other is not None and math.isclose(one, other, rel_tol=QUIET, abs_tol=QUIET / 10)
        for one, other in ((logs[name], others[name]) for name in logs)
    )
