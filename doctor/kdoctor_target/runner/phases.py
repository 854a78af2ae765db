"""The progress of a case or of one of its processes: its current phase, and the last phase that it finished."""

from __future__ import annotations

from typing import Any, Dict

BETWEEN = "between steps"
"""After a step and before the next one: callbacks, the end of an epoch. It is never reported as finished."""


def progress_of(event: Dict[str, Any]) -> Dict[str, Any]:
    """The phase that begins with an event, and the phase that it finishes."""
    return {name: event[name] for name in ("phase", "finished") if name in event}


def where(facts: Dict[str, Any]) -> str:
    """The phase of a process and the last one that it finished, for a message; empty if it reported none."""
    phase, finished = facts.get("phase"), facts.get("finished")
    if not phase:
        return ""
    if phase == BETWEEN:
        place = BETWEEN
    elif phase == "first step":
        place = "in the first step"
    else:
        place = "in " + (phase if phase.startswith("step ") else f"phase {phase}")
    return place + (f" (last finished: {finished})" if finished else "")
