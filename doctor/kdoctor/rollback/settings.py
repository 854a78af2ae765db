"""Rollback of environment variables and of ``keras.json``."""

from collections.abc import Iterator, Sequence

from kdoctor.commands.keras_json import put_settings, verify_settings
from kdoctor.commands.shell import is_assignable, quoted, set_variable
from kdoctor.engine.report import DriftChange
from kdoctor.lock.facts import OF_ONE_JOB, WITHHELD
from kdoctor.rollback.document import RollbackStep, step

_SETTINGS = ("keras.floatx", "keras.epsilon", "keras.image_data_format")


def variables(
    changes: Sequence[DriftChange], keras: Sequence[DriftChange], by_hand: list[str]
) -> Iterator[RollbackStep]:
    """The variables to set and unset, without those that name one job or environment: they differ between runs."""
    wanted: dict[str, str | None] = {}
    restored: list[DriftChange] = []
    named = {change.fact.removeprefix("environment.") for change in changes}
    for change in changes:
        name = change.fact.removeprefix("environment.")
        if name.startswith(OF_ONE_JOB):
            continue
        if change.old == WITHHELD:
            now = change.new or "not set"
            by_hand.append(f"{name} was set, and is now {now}; the lock withholds its value (--with-identifiers)")
        elif not is_assignable(name):
            by_hand.append(f"{name} was {change.old or 'not set'}; a shell cannot set a variable of that name")
        else:
            wanted[name] = change.old
            restored.append(change)
    for change in keras:
        if change.fact == "keras.backend" and change.old and "KERAS_BACKEND" not in named:
            wanted["KERAS_BACKEND"] = change.old
            restored.append(change)
        if change.fact == "keras.legacy" and "TF_USE_LEGACY_KERAS" not in named:
            wanted["TF_USE_LEGACY_KERAS"] = "1" if change.old == "yes" else None
            restored.append(change)
    if wanted:
        yield step(
            "Restore the environment variables, here and wherever the job gets them from.",
            restored,
            [set_variable(name, value) for name, value in wanted.items()],
            [_verify(name, value) for name, value in wanted.items()],
            in_shell=True,
        )


def _verify(name: str, value: str | None) -> str:
    return f'test -z "${{{name}+set}}"' if value is None else f'test "${{{name}-}}" = {quoted(value)}'


def keras_json(keras: Sequence[DriftChange]) -> Iterator[RollbackStep]:
    """The settings in ``keras.json`` that changed."""
    changes = [change for change in keras if change.fact in _SETTINGS and change.old is not None and change.new]
    settings = {change.fact.removeprefix("keras."): change.old for change in changes if change.old is not None}
    if settings:
        yield step(
            "Restore the recorded settings in keras.json.",
            changes,
            [put_settings(settings)],
            [verify_settings(settings)],
        )
