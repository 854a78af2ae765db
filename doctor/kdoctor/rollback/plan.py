"""From drift to steps. Pure: facts and a lock in, commands out."""

from __future__ import annotations

import shlex

from kdoctor.engine.report import DriftChange
from kdoctor.lock.document import Lock
from kdoctor.lock.drift import drift
from kdoctor.lock.facts import Recorded
from kdoctor.rollback.installers import HowMade
from kdoctor.rollback.model import RollbackPlan
from kdoctor.rollback.packages import bring_back, new_environment
from kdoctor.rollback.settings import keras_json, variables
from kdoctor.rollback.system import driver, hardware, image, libraries

_DERIVED = ("tensorflow.", "scenarios.", "measured.")
"""What follows from other facts, and comes back with them."""


def plan_rollback(lock: Lock, now: Recorded, how: HowMade, shown: str, checklist: str) -> RollbackPlan:
    """The way back from what stands now to the lock, only for what drifted.

    First the container's image, which may bring back all the rest; then the packages, which need no root and can be
    tried at once; then variables and settings; then the system's libraries, which need root; then the driver, which
    needs root and a reboot. Each step is verified by itself.

    Args:
        lock: what to go back to.
        now: what stands now.
        how: who keeps it.
        shown: the lock's file.
        checklist: the checklist's name or path, to examine again by.
    """
    found = drift(lock, now, (), shown)
    by_section: dict[str, list[DriftChange]] = {}
    for change in found.changes:
        if not change.fact.startswith(_DERIVED):
            by_section.setdefault(change.fact.partition(".")[0], []).append(change)
    packages, conda, keras = (by_section.get(name, []) for name in ("packages", "conda", "keras"))
    by_hand: list[str] = []
    anew = new_environment(by_section.get("python", []), [*packages, *conda], lock, how, by_hand)
    steps = [
        *image(by_section.get("host", []), how),
        *([anew] if anew else bring_back(packages, conda, how, by_hand)),
        # KERAS_HOME says which keras.json counts.
        *variables(by_section.get("environment", []), keras, by_hand),
        *keras_json(keras),
        *libraries(by_section.get("libraries", []), [*packages, *conda], lock, how, by_hand),
        *driver(by_section.get("driver", []), lock, how, by_hand),
    ]
    hardware(by_section, by_hand)
    return RollbackPlan(
        lock=shown,
        recorded=lock.recorded,
        steps=tuple(steps),
        by_hand=tuple(by_hand),
        unread=found.unread,
        # An environment that is made anew is another one than was examined.
        again=shlex.join(["kdoctor", "check", "--checklist", checklist, *([] if anew else ["--python", how.python])]),
        caution=_caution(lock, now),
    )


def _caution(lock: Lock, now: Recorded) -> str | None:
    """A lock names no paths: that it is another environment's shows by what is installed."""
    here, there = now.facts.get("packages", {}), lock.facts.get("packages", {})
    strange = [name for name in here if name not in there]
    if len(strange) * 2 <= len(here) or not there:
        return None
    return (
        f"{len(strange)} of the {len(here)} packages here are not in the lock: it may be that of another environment "
        "(name the right one with --python)"
    )
