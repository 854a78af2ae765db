"""How far a case or one of its processes came: which phase it is in, and which one it finished last."""

from __future__ import annotations

from typing import Any, Dict

BETWEEN = "between steps"
"""After a step and before the next one: the callbacks, the end of an epoch. It is never finished itself."""


def progress_of(event: Dict[str, Any]) -> Dict[str, Any]:
    """The phase that an event enters, and the one that it finishes."""
    return {name: event[name] for name in ("phase", "finished") if name in event}


def where(facts: Dict[str, Any]) -> str:
    """Where a process is or was, and the last phase that it finished; empty where it said neither."""
    phase, finished = facts.get("phase"), facts.get("finished")
    if not phase:
        return ""
    if phase == BETWEEN:
        place = BETWEEN
    elif phase == "first step":
        place = "in the first step"
    else:
        place = "in {}{}".format("" if phase.startswith("step ") else "phase ", phase)
    return place + (" (last finished: {})".format(finished) if finished else "")
