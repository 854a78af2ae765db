"""Commands of kdoctor as they run where this one runs: the program, and the environment that it examines."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from kdoctor.commands.shell import quoted
from kdoctor.plugins.installed import offers

_NAME = "kdoctor"
_NAMES = (_NAME, "keras-doctor")
_EXAMINING = ("check", "smoke", "snapshot")
"""The commands that examine an environment."""
root_without_sudo = hasattr(os, "geteuid") and os.geteuid() == 0 and not shutil.which("sudo")
"""As in most containers."""
has_driver = any(Path(node).exists() for node in ("/dev/nvidiactl", "/dev/dxg"))
"""Whether there is NVIDIA's driver on this machine, which takes no time to see."""
_CHECK, _SMOKE, _PYTHON = "check", "smoke", "--python"
_REPLACES = {"--checklist": ("-c", "--gpus"), "--gpus 0": ("--select",), "--python": ("--snapshot",)}
"""Options of a run that do not fit another value of this one. Without GPUs, nothing may be left of a selection."""
CORE_COMMANDS = frozenset((
    "check", "checklist", "explain", "history", "list", "matrix", "rollback", "schema", "smoke", "snapshot", "topology"
))  # fmt: skip
"""Those of the core. The others are entry points."""
_CALL = re.compile(
    r"kdoctor(?= ([a-z]+)\b)(?:(?<=: kdoctor)(?<!^kdoctor: kdoctor)|(?<=[`(]kdoctor)|(?<=&& kdoctor)"
    r"|(?<=^  kdoctor)|(?<=^ {4}kdoctor)|(?<=^ {6}kdoctor))",
    re.MULTILINE,
)
"""It begins with the word, which Python finds 150 times as fast as what precedes it."""
_LAST = re.compile(r": kdoctor (?:check|smoke|snapshot|rollback|checklist (?:init|record)) (?!--help).*\Z")
_SUDO = re.compile(r"(?<![^ ;|(])sudo ")


def program(arguments: Sequence[str] | None = None) -> tuple[str, ...]:
    """How to call this program: by its name where the shell finds it, else by its path.

    Args:
        arguments: of the process; None for those of this one.
    """
    called = (sys.argv if arguments is None else arguments)[0]
    name = Path(called).name
    if name not in _NAMES:  # a script that imports kdoctor, or the module
        return (_NAME,) if shutil.which(_NAME) else (sys.executable, "-m", _NAME)
    found = shutil.which(name)
    return (name,) if found and Path(called).exists() and Path(called).samefile(found) else (called,)


def called_here(text: str) -> str:
    """A text whose commands (after a colon, in backticks, or alone) run where the shell does not find kdoctor."""
    called = quoted(*program())
    if called == _NAME:
        return text
    names = CORE_COMMANDS.union(entry.name for entry in offers("commands"))
    return _CALL.sub(lambda found: called if found[1] in names else _NAME, text)


def in_same_place(command: str, asked: str) -> str:
    """A command of a fix, for the user, the environment and the job of a run.

    Args:
        command: any command. Only those of kdoctor change, and those with sudo where root has none.
        asked: the command of the run; empty if there was none.
    """
    if asked and root_without_sudo and "--snapshot" not in asked:  # those run on the recorded machine
        command = _SUDO.sub("", command)
    if not command.startswith(f"{_NAME} "):
        return command
    if not asked:
        return command.replace(_NAME, quoted(*program()), 1)
    words = shlex.split(asked)
    if _SMOKE in words and "--checklist" not in command:
        command = command.replace(f"{_NAME} {_CHECK}", f"{_NAME} {_SMOKE}").replace("--gpus 0", "--replicas 2")
    called = quoted(*words[: next((place for place, word in enumerate(words) if word in _EXAMINING), 1)])
    here = command.replace(_NAME, called, 1)
    does = command.split()[1]
    if does not in _EXAMINING:
        return here
    if does in (_CHECK, _SMOKE) and does in words:
        return " ".join([here, *map(quoted, _others(words[words.index(does) + 1 :], command.split()[2:]))])
    given = None if _PYTHON in command else _value(words, _PYTHON)
    return f"{here} {_PYTHON} {quoted(given)}" if given else here


def in_same_environment(text: str, arguments: Sequence[str]) -> str:
    """An error whose last line ends with a command, which examines the environment that this process examines."""
    given = _value(arguments, _PYTHON)
    return f"{text} {_PYTHON} {quoted(given)}" if given and _LAST.search(text) and _PYTHON not in text else text


def _others(asked: Sequence[str], changed: Sequence[str]) -> Iterator[str]:
    """The options of a run but for those that a fix changes."""
    has_value = {
        name: not after.startswith("-")
        for word, after in pairwise([*changed, "-"])
        for name in (word, *_REPLACES.get(word, ()), *_REPLACES.get(f"{word} {after}", ()))
        if word.startswith("-")  # a value of another option may be the same word
    }
    left_out = False
    for word in asked:
        name, joined, _ = word.partition("=")
        if not left_out and name not in has_value:
            yield word
        left_out = not joined and has_value.get(name, False)


def _value(words: Sequence[str], name: str) -> str | None:
    """The value of an option of the run."""
    after = (value for word, value in pairwise(words) if word == name)
    return next(after, next((word.partition("=")[2] for word in words if word.startswith(f"{name}=")), None))
