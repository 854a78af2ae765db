"""Chooses the interpreter to examine and verifies it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kdoctor.errors import UsageError
from kdoctor.facts import Choice
from kdoctor.probes.process.child import Children, ChildrenEnded

MINIMUM_VERSION = (3, 9)
"""The oldest Python that kdoctor examines, also required by the oldest TensorFlow for Keras 3."""

DEADLINE_S = 10.0
"""Seconds for an interpreter to report its version."""

# Valid in Python 2, too, to distinguish an old Python from another program.
_QUESTION = "import sys; sys.stdout.write('\\n\\036[%d, %d, %d]\\n' % tuple(sys.version_info[:3]))"
_IN_ENVIRONMENT = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")
_HOW_TO_CHOOSE = "choose one with --python, for example --python /path/to/venv/bin/python"


class TargetError(UsageError):
    """The interpreter to examine cannot be used. The message is for the user."""


@dataclass(frozen=True, kw_only=True)
class ChosenTarget:
    """The interpreter to examine."""

    python: str
    """Absolute path. Links are not followed, because a virtual environment's Python is a link."""
    chosen_by: Choice
    version: str
    """``major.minor.micro``."""


def choose_target(
    option: str | None,
    environ: Mapping[str, str],
    children: Children | None = None,
    *,
    deadline_s: float = DEADLINE_S,
) -> ChosenTarget:
    """The interpreter given by ``--python``, else the active environment's, else kdoctor's own.

    Args:
        option: the value of ``--python``: the path of an interpreter or of an environment's folder, or a program on
            PATH.
        environ: the user's environment variables.
        children: starts the interpreter to read its version.
        deadline_s: seconds for that.

    Raises:
        TargetError: the interpreter does not exist, is not Python, is too old, or hangs.
        ChildrenEnded: the run was interrupted.
    """
    python, chosen_by = _choose(option, environ)
    if python == sys.executable:
        version = sys.version_info[:3]
    else:
        version = _ask_version(python, environ, children or Children(), deadline_s)
    if version < MINIMUM_VERSION:
        least = ".".join(map(str, MINIMUM_VERSION))
        raise TargetError(f"{python} is Python {_text(version)}, but kdoctor requires Python {least} or newer")
    return ChosenTarget(python=python, chosen_by=chosen_by, version=_text(version))


def _choose(option: str | None, environ: Mapping[str, str]) -> tuple[str, Choice]:
    if option is not None:
        return _from_option(option, environ), "--python"
    active: tuple[tuple[str, Choice], ...] = (
        ("VIRTUAL_ENV", "active virtual environment"),
        ("CONDA_PREFIX", "active conda environment"),
    )
    for variable, choice in active:
        folder = environ.get(variable)
        if folder:
            python = _in_environment(Path(folder))
            if python is None:
                raise TargetError(
                    f"the {choice} {folder} ({variable}) has no Python: activate another one, or {_HOW_TO_CHOOSE}"
                )
            return python, choice
    if not sys.executable:
        raise TargetError(f"kdoctor's own interpreter is unknown: {_HOW_TO_CHOOSE}")
    return sys.executable, "kdoctor's own"


def _from_option(option: str, environ: Mapping[str, str]) -> str:
    if not option.strip():
        raise TargetError("--python is empty: pass the path of an interpreter or of an environment's folder")
    path = Path(option).expanduser() if option.startswith("~") else Path(option)
    if path.is_dir():
        python = _in_environment(path)
        if python is None:
            raise TargetError(
                f"--python {option}: no Python in this folder (expected {', '.join(_IN_ENVIRONMENT[:2])})"
            )
        return python
    if path.name == option:
        found = shutil.which(option, path=environ.get("PATH", os.defpath))
        if found:
            return _absolute(Path(found))
        if not path.exists():
            raise TargetError(f"--python {option}: not found on PATH or in the working directory")
    if not path.exists():
        broken = " (broken link)" if path.is_symlink() else ""
        raise TargetError(f"--python {option}: no such file{broken}")
    return _absolute(path)


def _in_environment(folder: Path) -> str | None:
    candidates = (folder / name for name in _IN_ENVIRONMENT)
    return next((_absolute(path) for path in candidates if path.is_file()), None)


def _absolute(path: Path) -> str:
    return str(path.absolute())


def _ask_version(
    python: str, environ: Mapping[str, str], children: Children, deadline_s: float
) -> tuple[int, int, int]:
    try:
        end = children.run([python, "-S", "-E", "-c", _QUESTION], env=environ, deadline_s=deadline_s)
    except ChildrenEnded:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TargetError(f"{python} could not be started: {reason}") from error
    if end.timed_out:
        raise TargetError(f"{python} did not report its version within {deadline_s:g} s")
    match end.records:
        case ([int(major), int(minor), int(micro)],):
            return major, minor, micro
        case _:
            raise TargetError(f"{python} is not a Python interpreter: it {end.describe()} and reported no version")


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
