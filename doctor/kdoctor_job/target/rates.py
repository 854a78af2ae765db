"""The learning rates that a schedule gives in the job's steps."""

from __future__ import annotations

from typing import Any, Dict

_LOOKED_AT = 21
"""Steps, from the first to the last but a tenth, in which schedules come near 0 on purpose."""
_NOTHING = 1e-6
"""A rate of this share of the largest changes no weight."""


def of_schedule(model: Any, steps: int) -> Dict[str, int]:
    """The number of steps, and the first from which a schedule gives 0, if it does.

    Args:
        model: a compiled one.
        steps: of the training; fewer if not all are known.
    """
    optimizer = getattr(model, "optimizer", None)
    rate: Any = getattr(getattr(optimizer, "inner_optimizer", optimizer), "_learning_rate", None)
    if not callable(getattr(rate, "get_config", None)):
        return {}
    places = [steps * 9 * one // (10 * (_LOOKED_AT - 1)) for one in range(_LOOKED_AT)]
    try:
        rates = [abs(float(rate(place))) for place in places]
    except Exception:
        return {}  # it may need tensors that only a step has
    positive = [place for place, one in zip(places, rates) if one > _NOTHING * max(rates)]
    after = [place for place in places if not positive or place > positive[-1]]
    return {"scheduled_steps": steps, **({"zero_from": after[0]} if after else {})}
