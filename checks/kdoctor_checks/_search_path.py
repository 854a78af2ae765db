"""Commands that change where the dynamic loader looks, and the way back from them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Rollback

VARIABLE = "LD_LIBRARY_PATH"


def search_first(folders: Sequence[str]) -> str:
    """The command that makes the loader look into these folders first."""
    joined = ":".join(dict.fromkeys(folders))
    return f'export {VARIABLE}={shlex.quote(joined)}"${{{VARIABLE}:+:${VARIABLE}}}"'


def search_without(folders: Sequence[str], environment: Environment) -> str:
    """The command that takes these folders from the variable as it is recorded."""
    kept = [entry for entry in (environment.get(VARIABLE) or "").split(":") if entry and _plain(entry) not in folders]
    return f"export {VARIABLE}={shlex.quote(':'.join(kept))}" if kept else f"unset {VARIABLE}"


def restore_path(environment: Environment | Unavailable) -> Rollback:
    """The variable as it is recorded."""
    recorded = environment.get(VARIABLE) if isinstance(environment, Environment) else None
    if recorded is not None:
        return Rollback.to(f"{VARIABLE} as recorded", f"export {VARIABLE}={shlex.quote(recorded)}")
    if isinstance(environment, Environment) and environment.is_unset(VARIABLE):
        return Rollback.to(f"no {VARIABLE}, as recorded", f"unset {VARIABLE}")
    return Rollback.nothing(f"export holds for one shell only; what {VARIABLE} was is not recorded")


def _plain(folder: str) -> str:
    return folder.rstrip("/") or "/"
