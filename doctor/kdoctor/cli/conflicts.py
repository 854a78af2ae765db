"""Options that contradict each other, or have no effect. Ignoring one would hide that the user meant something else."""

from collections.abc import Mapping

import typer

from kdoctor.errors import UsageError

SNAPSHOT_IS_USED = "A snapshot has the facts of the run in which it was recorded."


def refuse_with(option: str, given: object, others: Mapping[str, object], *, why: str) -> None:
    """Refuse options that have no effect with another.

    Args:
        option: the option that makes the others useless.
        given: its value. Nothing is refused without one.
        others: names and values of the others.
        why: why they have no effect.

    Raises:
        UsageError: one of the others has a value.
    """
    named = [name for name, value in others.items() if _is_given(value)]
    if _is_given(given) and named:
        raise UsageError(f"{' and '.join(named)} cannot be used with {option}", hint=why)


def is_named(context: typer.Context, parameter: str) -> bool:
    """Whether the user gave the option, even with its default as value."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name != "DEFAULT"


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != []
