"""Commands that change where the dynamic loader looks for libraries."""

from collections.abc import Sequence

from kdoctor.commands.shell import quoted, set_variable
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Rollback

VARIABLE = "LD_LIBRARY_PATH"


def search_first(folders: Sequence[str]) -> str:
    """The command that puts these folders first."""
    return f'export {VARIABLE}={quoted(":".join(dict.fromkeys(folders)))}"${{{VARIABLE}:+:${VARIABLE}}}"'


def search_without(folders: Sequence[str], environment: Environment) -> str:
    """The command that removes these folders from the recorded value."""
    entries = (environment.variables.get(VARIABLE) or "").split(":")
    kept = [entry for entry in entries if entry and (entry.rstrip("/") or "/") not in folders]
    return set_variable(VARIABLE, ":".join(kept) or None)


def restore_path(environment: Environment | Unavailable) -> Rollback:
    """The rollback to the recorded value."""
    recorded = environment.variables.get(VARIABLE) if isinstance(environment, Environment) else None
    if recorded is not None:
        return Rollback.to(f"restore the recorded {VARIABLE}", set_variable(VARIABLE, recorded))
    if isinstance(environment, Environment) and environment.is_unset(VARIABLE):
        return Rollback.to(f"unset {VARIABLE} again", set_variable(VARIABLE, None))
    return Rollback.nothing(f"not needed (export affects one shell only; the value of {VARIABLE} was not recorded)")
