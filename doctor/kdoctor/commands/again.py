"""Commands of kdoctor as they run where this one runs: the program, and the environment that it examines."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from kdoctor.commands.shell import quoted

_NAME = "kdoctor"
_NAMES = (_NAME, "keras-doctor")
_EXAMINING = ("check", "smoke", "snapshot")
"""The commands that examine an environment."""
root_without_sudo = hasattr(os, "geteuid") and os.geteuid() == 0 and not shutil.which("sudo")
"""As in most containers."""
_NO_SMOKE = "--no-smoke"
_SUDO = re.compile(r"(?<![^ ;|(])sudo ")


def program(arguments: Sequence[str] | None = None) -> tuple[str, ...]:
    """How to call this program: by its name where the shell finds it, else by its path.

    Args:
        arguments: of the process; None for those of this one.
    """
    called = (sys.argv if arguments is None else arguments)[0]
    name = Path(called).name
    found = shutil.which(_NAME if name == "__main__.py" else name)
    if name in _NAMES:
        return (name,) if found and Path(called).exists() and Path(called).samefile(found) else (called,)
    is_module = name == "__main__.py" and Path(called).parent.name == _NAME
    return (sys.executable, "-m", _NAME) if is_module and not found else (_NAME,)


def in_same_place(command: str, asked: str) -> str:
    """A command of a fix, for the user, the environment and the checklist of a run.

    Args:
        command: any command. Only those of kdoctor change, and those with sudo where root has none.
        asked: the command of the run; empty if there was none.
    """
    if asked and root_without_sudo and "--snapshot" not in asked:  # those run on the recorded machine
        command = _SUDO.sub("", command)
    if not asked or not command.startswith(f"{_NAME} "):
        return command
    words = shlex.split(asked)
    called = quoted(*words[: next((place for place, word in enumerate(words) if word in _EXAMINING), 1)])
    here = command.replace(_NAME, called, 1)
    does = command.split()[1]
    if does not in _EXAMINING:
        return here
    kept = [("--python",), *([("--checklist", "-c")] if does == "check" else [])]
    given = {names[0]: _value(words, names) for names in kept if names[0] not in command}
    if does == "check" and _NO_SMOKE in words and _NO_SMOKE not in command:
        here += f" {_NO_SMOKE}"
    return " ".join([here, *(f"{option} {quoted(value)}" for option, value in given.items() if value)])


def _value(words: Sequence[str], names: Sequence[str]) -> str | None:
    """The value of an option of the run."""
    after = (value for word, value in pairwise(words) if word in names)
    return next(after, next((word.partition("=")[2] for word in words if word.startswith(f"{names[0]}=")), None))
