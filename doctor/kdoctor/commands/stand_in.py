"""The rule for kdoctor's own environment: no fix changes it, unless the user named it."""

import re
import shlex
from dataclasses import replace

from kdoctor.facts import Target
from kdoctor.model import Action, Finding, Outcome, Remedy, Rollback

NAME_THE_ENVIRONMENT = (
    "Name the environment of the job with --python. kdoctor examined its own, because no other was found."
)
CHECK_ANOTHER = "kdoctor check --python PATH"

_NOT_INSTALLED = "versions.tensorflow-installed"
_INSTALLERS = frozenset({"pip", "pip3", "conda", "mamba", "micromamba"})
_CHANGES = frozenset({"install", "uninstall", "remove", "update", "upgrade", "sync", "add"})
_PYTHON = re.compile(r"python[\d.]*")


def without_own_environment(outcome: Outcome, target: Target, check: str) -> Outcome:
    """The outcome of a check, without commands that change the packages of a stand-in for the job's environment.

    Such a finding follows from the missing TensorFlow, unless it reports that itself.
    """
    if not (target.stand_in and isinstance(outcome, Finding) and any(map(changes_packages, outcome.remedy.commands))):
        return outcome
    return replace(
        outcome,
        remedy=Remedy(summary=NAME_THE_ENVIRONMENT, action=Action.CONFIGURE, commands=(CHECK_ANOTHER,)),
        rollback=Rollback.nothing("not needed (nothing is installed)"),
        explained_by=outcome.explained_by if check == _NOT_INSTALLED else (*outcome.explained_by, _NOT_INSTALLED),
    )


def changes_packages(command: str) -> bool:
    """Whether a command installs or removes packages of a Python environment."""
    try:
        words = shlex.split(command)
    except ValueError:
        return True
    if words[:1] == ["sudo"]:
        words = words[1:]
    program, *rest = [words[0].rpartition("/")[2], *words[1:]] if words else [""]
    if _PYTHON.fullmatch(program) and rest[:2] in (["-m", "pip"], ["-m", "ensurepip;"]):
        program, rest = "pip", rest[5:] if rest[1] == "ensurepip;" else rest[2:]
    if program == "uv":
        program, rest = "pip", rest[1:] if rest[:1] == ["pip"] else rest
    return program in _INSTALLERS and bool(_CHANGES.intersection(rest[:1]))
