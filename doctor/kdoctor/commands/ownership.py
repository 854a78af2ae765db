"""Who may change an environment: no fix changes kdoctor's own, unless the user named it, and of others the owner."""

import re
import shlex
from dataclasses import replace
from itertools import groupby

from kdoctor.facts import Target
from kdoctor.model import Action, Finding, Outcome, Remedy, Rollback

NAME_THE_ENVIRONMENT = (
    "Name the environment of the job with --python. kdoctor examined its own, because no other was found."
)
CHECK_ANOTHER = "kdoctor check --python PATH"

_NOT_INSTALLED = "versions.tensorflow-installed"
_INSTALLERS = frozenset({"pip", "pip3", "conda", "mamba", "micromamba"})
_CHANGES = frozenset({"install", "uninstall", "remove", "update", "upgrade", "sync", "add"})
_OPERATORS = frozenset(";&|()<>")
_PYTHON = re.compile(r"python[\d.]*")


def as_user_may(outcome: Outcome, target: Target, check: str) -> Outcome:
    """The outcome of a check, without commands that change the packages of a stand-in for the job's environment.

    Such a finding follows from the missing TensorFlow, unless it reports that itself. If only the owner can change the
    packages, that is said. Outside of virtual and conda environments, pip installs for the user.
    """
    if not (isinstance(outcome, Finding) and any(map(changes_packages, outcome.remedy.commands))):
        return outcome
    if target.stand_in:
        return replace(
            outcome,
            remedy=Remedy(summary=NAME_THE_ENVIRONMENT, action=Action.CONFIGURE, commands=(CHECK_ANOTHER,)),
            rollback=Rollback.nothing("not needed (nothing is installed)"),
            explained_by=outcome.explained_by if check == _NOT_INSTALLED else (*outcome.explained_by, _NOT_INSTALLED),
        )
    if target.read_only and target.environment != "system":
        summary = f"You cannot write to {target.prefix}: ask its owner, or make your own. {outcome.remedy.summary}"
        return replace(outcome, remedy=replace(outcome.remedy, summary=summary))
    return outcome


def changes_packages(command: str) -> bool:
    """Whether a command, or one of several in a line, installs or removes packages of a Python environment."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        return True
    return any(_changes(list(part)) for ends, part in groupby(words, key=_OPERATORS.issuperset) if not ends)


def _changes(words: list[str]) -> bool:
    words = words[1:] if words[:1] == ["sudo"] else words
    program, rest = "".join(words[:1]).rpartition("/")[2], words[1:]
    if _PYTHON.fullmatch(program) and rest[:2] == ["-m", "pip"]:
        program, rest = "pip", rest[2:]
    if program == "uv":
        program, rest = "pip", rest[1:] if rest[:1] == ["pip"] else rest
    return program in _INSTALLERS and bool(_CHANGES.intersection(rest[:1]))
