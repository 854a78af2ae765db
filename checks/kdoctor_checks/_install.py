"""Commands that change what the target environment holds, and the way back from them."""

from __future__ import annotations

import shlex

from kdoctor.facts import Packages, Target
from kdoctor.model import Rollback


def install(target: Target, packages: Packages | None, *requirements: str) -> str:
    """The command that installs the requirements into the target, by the tool that can reach it."""
    return _command(target, packages, "install", *requirements)


def uninstall(target: Target, packages: Packages | None, *names: str) -> str:
    """The command that removes the distributions from the target without asking."""
    has_pip = packages is None or packages.has_pip is not False
    return _command(target, packages, "uninstall", *(("-y",) if has_pip else ()), *names)


def restore(target: Target, packages: Packages, *names: str) -> Rollback:
    """The way back to the recorded state of these distributions: their versions, or their absence."""
    present = [found for name in names if (found := packages.find(name))]
    unversioned = [found.name for found in present if found.version is None]
    if unversioned:
        return Rollback.irreversible(f"the installed {', '.join(unversioned)} has no version in its metadata")
    absent = [name for name in names if packages.find(name) is None]
    pins = [f"{found.name}=={found.version}" for found in present]
    commands = [install(target, packages, *pins)] if pins else []
    if absent:
        commands.append(uninstall(target, packages, *absent))
    state = ", ".join([*pins, *(f"no {name}" for name in absent)])
    return Rollback.to(f"what was recorded: {state}", *commands)


def _command(target: Target, packages: Packages | None, verb: str, *arguments: str) -> str:
    """Pip of the target itself; uv from outside where the target has none (``uv venv`` makes such)."""
    if packages is not None and packages.has_pip is False:
        return shlex.join(["uv", "pip", verb, "--python", target.executable, *arguments])
    return shlex.join([target.executable, "-m", "pip", verb, *arguments])
