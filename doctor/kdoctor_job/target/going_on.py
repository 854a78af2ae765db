"""After which step a run goes on that was killed, judged by the numbers of its steps."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import numpy as np


def apart(wanted: Any, found: Any, scale: Any) -> float:
    """The largest difference of two arrays of numbers, relative to the scale of each; infinite for other numbers."""
    if wanted.shape != found.shape or not np.array_equal(np.isfinite(wanted), np.isfinite(found)):
        return math.inf
    return float(np.max(np.abs(wanted - found) / scale, where=np.isfinite(wanted), initial=0.0))


def scale_of(whole: Any) -> Any:
    """The largest size of each of the numbers of a step, but not 0."""
    return np.maximum(np.max(np.abs(whole), axis=0, where=np.isfinite(whole), initial=0.0), np.finfo("float64").tiny)


def goes_on(whole: Any, again: Any, killed: int, tolerance: float) -> Tuple[Optional[int], Optional[int]]:
    """After which step a run goes on, and the first step with other numbers.

    Args:
        whole: the numbers of each step of the run that was not killed.
        again: of the one that goes on.
        killed: steps that it had yielded before the kill. It may have saved the next one.
        tolerance: of equal numbers, relative to their scale.

    Returns:
        The step is None if no step of ``whole`` has its first numbers. The second is None if all are equal.
    """
    first = None
    for after in range(min(killed + 1, len(whole) - 1), -1, -1):
        pairs = list(zip(whole[after:], again))
        equal = [apart(*pair, scale_of(whole)) <= tolerance for pair in pairs]
        if pairs and all(equal):
            return after, None
        if pairs and equal[0] and first is None:
            first = after, after + equal.index(False) + 1
    return first or (None, None)
