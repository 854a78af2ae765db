"""Commands of kdoctor as they run where this one runs: the program, and the environment that it examines."""

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
    """A command of a fix, for the environment that a run examined.

    Args:
        command: any command. Only those of kdoctor change.
        asked: the command of the run; empty if there was none.
    """
    if not asked or not command.startswith(f"{_NAME} "):
        return command
    words = shlex.split(asked)
    called = quoted(*words[: next((place for place, word in enumerate(words) if word in _EXAMINING), 1)])
    here = command.replace(_NAME, called, 1)
    environment = next(
        (value for option, value in pairwise(words) if option == "--python"),
        next((word.partition("=")[2] for word in words if word.startswith("--python=")), None),
    )
    examines = command.split()[1] in _EXAMINING
    return f"{here} --python {quoted(environment)}" if environment and examines and "--python" not in command else here
