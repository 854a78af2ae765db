"""New optimizers and metrics with the settings of the job's, because theirs have state."""

from __future__ import annotations

from typing import Any

from kdoctor_job.target.cloning import CopyError, arguments_of, is_plain
from kdoctor_job.target.parts import describe, is_own_class

_ADVICE = "pass a function that builds and compiles the model"


def renew(value: Any) -> Any:
    """The arguments of ``compile``, with new metrics.

    Raises:
        CopyError: a metric cannot be made again.
    """
    if isinstance(value, dict):
        return {name: renew(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [renew(part) for part in value]
    if any(base.__name__ == "Metric" for base in type(value).__mro__):
        return _again(value, "metric", {})
    return value


def renew_optimizer(optimizer: Any) -> Any:
    """A new optimizer with the same settings.

    Raises:
        CopyError: its class does not report all of them.
    """
    if optimizer is None or isinstance(optimizer, str):
        return optimizer
    rate = getattr(optimizer, "_learning_rate", None)
    # Schedules and functions have no state, and may not be found by name.
    kept = {"learning_rate": rate} if callable(rate) and not hasattr(rate, "assign") else {}
    return _again(optimizer, "optimizer", kept)


def _again(one: Any, what: str, kept: Any) -> Any:
    kind = type(one)
    try:
        config = {**one.get_config(), **kept}
        made = kind.from_config(dict(config))
    except Exception as error:
        raise CopyError(f"the {what} {kind.__name__} cannot be copied ({describe(error)}): {_ADVICE}") from error
    if is_own_class(kind):
        lost = [name for name in arguments_of(kind) if name not in config]
        if lost:
            listed = " and ".join(lost)
            reason = f"get_config() of the {what} {kind.__name__} does not return {listed}"
            raise CopyError(f"{reason}, so it cannot be copied: {_ADVICE}")
        for name in arguments_of(kind):
            value, theirs = getattr(one, name, None), getattr(made, name, None)
            if is_plain(value) and theirs != value:
                reason = f"attribute {name} of the {what} {kind.__name__} is {value!r}, and {theirs!r} in a copy"
                raise CopyError(f"{reason}: {_ADVICE}")
    return made
