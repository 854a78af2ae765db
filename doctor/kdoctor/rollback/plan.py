"""From drift to a rollback plan. Pure: facts and a lock in, commands out."""

from kdoctor.commands.again import program
from kdoctor.commands.shell import quoted
from kdoctor.engine.report import DriftChange
from kdoctor.lock.document import Lock
from kdoctor.lock.drift import drift
from kdoctor.lock.facts import Recorded
from kdoctor.rollback.document import RollbackPlan
from kdoctor.rollback.installers import Installation
from kdoctor.rollback.packages import new_environment, restore_packages
from kdoctor.rollback.settings import keras_json, variables
from kdoctor.rollback.system import driver, hardware, image, libraries
from kdoctor.text.lists import counted

_DERIVED = ("tensorflow.", "scenarios.", "measured.")
"""Facts that follow from others, and are restored with them."""


def plan_rollback(lock: Lock, now: Recorded, installation: Installation, shown: str, checklist: str) -> RollbackPlan:
    """The steps from the current state back to the lock, only for what drifted.

    The order is: the container image, which may restore all the rest; packages, which need no root; variables and
    settings; libraries of the system, which need root; the driver, which needs root and a reboot.

    Args:
        lock: the state to restore.
        now: the current state.
        installation: how the environment and the machine were installed.
        shown: the lock's file.
        checklist: the checklist's name or path, for the command that checks again.
    """
    found = drift(lock, now, (), shown)
    by_section: dict[str, list[DriftChange]] = {}
    for change in found.changes:
        if not change.fact.startswith(_DERIVED):
            by_section.setdefault(change.fact.partition(".")[0], []).append(change)
    python, packages, conda, keras = (by_section.get(name, []) for name in ("python", "packages", "conda", "keras"))
    by_hand: list[str] = []
    if installation.is_stand_in and (python or packages or conda):
        by_hand.append(
            f"the environment differs from the lock in {counted(len([*python, *packages, *conda]), 'fact')}, but "
            f"{installation.prefix} is kdoctor's own; name the environment of the job with --python"
        )
        python, packages, conda = [], [], []
    replaced = new_environment(python, [*packages, *conda], lock, installation, by_hand)
    steps = [
        *image(by_section.get("host", []), installation),
        *([replaced] if replaced else restore_packages(packages, conda, installation, by_hand)),
        *variables(by_section.get("environment", []), keras, by_hand),  # KERAS_HOME decides which keras.json is used
        *keras_json(keras),
        *libraries(by_section.get("libraries", []), [*packages, *conda], lock, installation, by_hand),
        *driver(by_section.get("driver", []), lock, installation, by_hand),
    ]
    named = [] if replaced else ["--python", "PATH" if installation.is_stand_in else installation.python]
    return RollbackPlan(
        schema_="kdoctor/rollback/v1",
        lock=shown,
        recorded=lock.recorded,
        caution=caution(lock, now),
        steps=tuple(steps),
        by_hand=(*by_hand, *hardware(by_section)),
        unread=found.unread,
        again=quoted(*program(), "check", "--checklist", checklist, *named),
    )


def caution(lock: Lock, now: Recorded) -> str | None:
    """Locks record no paths, so only the packages show that a lock is of another environment."""
    here, there = now.facts.get("packages", {}), lock.facts.get("packages", {})
    differ = [name for name in {**here, **there} if here.get(name) != there.get(name)]
    if len(differ) * 2 <= len({**here, **there}) or not there or not here:
        return None
    return (
        f"{len(differ)} of {counted(len({**here, **there}), 'package')} differ from the lock; "
        "it may be of another environment (use --python to choose the environment)"
    )
