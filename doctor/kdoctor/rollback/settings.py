"""The way back of variables, and of what keras.json sets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from kdoctor.commands.keras_json import put_settings, see_settings
from kdoctor.commands.shell import restores
from kdoctor.engine.report import DriftChange
from kdoctor.lock.facts import OF_ONE_JOB, WITHHELD
from kdoctor.rollback.model import RollbackStep

_SETTINGS = ("keras.floatx", "keras.epsilon", "keras.image_data_format")
_ASSIGNABLE = re.compile(r"[A-Za-z_]\w*")


def variables(
    changes: Sequence[DriftChange], keras: Sequence[DriftChange], by_hand: list[str]
) -> Iterator[RollbackStep]:
    """The variables to set and unset. What names one job or environment is none of it: it differs from run to run."""
    commands: list[str] = []
    verify: list[str] = []
    restored: list[DriftChange] = []
    named = set()
    for change in changes:
        name = change.fact.removeprefix("environment.")
        named.add(name)
        if name.startswith(OF_ONE_JOB):
            continue
        if change.old == WITHHELD:
            now = change.new or "not set"
            by_hand.append(f"{name} was set, and is {now}: its value was withheld from the lock (--with-identifiers)")
        elif not _ASSIGNABLE.fullmatch(name):
            by_hand.append(f"{name} was {change.old or 'not set'}: no shell can set a variable of that name")
        else:
            _assign(name, change.old, commands, verify)
            restored.append(change)
    for change in keras:
        if change.fact == "keras.backend" and change.old and "KERAS_BACKEND" not in named:
            _assign("KERAS_BACKEND", change.old, commands, verify)
            restored.append(change)
        if change.fact == "keras.legacy" and "TF_USE_LEGACY_KERAS" not in named:
            _assign("TF_USE_LEGACY_KERAS", "1" if change.old == "yes" else None, commands, verify)
            restored.append(change)
    if commands:
        yield RollbackStep(
            title="Set and unset the variables as they were, here and wherever the job gets them from.",
            restores=restores(restored),
            commands=tuple(commands),
            verify=tuple(verify),
            in_shell=True,
        )


def _assign(name: str, value: str | None, commands: list[str], verify: list[str]) -> None:
    if value is None:
        commands.append(f"unset {name}")
        verify.append(f'test -z "${{{name}+set}}"')
    else:
        commands.append(f"export {name}={shlex.quote(value)}")
        verify.append(f'test "${{{name}-}}" = {shlex.quote(value)}')


def keras_json(keras: Sequence[DriftChange]) -> Iterator[RollbackStep]:
    """What ``keras.json`` set otherwise."""
    changes = [change for change in keras if change.fact in _SETTINGS and change.old is not None and change.new]
    settings = {change.fact.removeprefix("keras."): change.old for change in changes if change.old is not None}
    if settings:
        yield RollbackStep(
            title="Put the recorded settings back into keras.json.",
            restores=restores(changes),
            commands=(put_settings(settings),),
            verify=(see_settings(settings),),
        )
