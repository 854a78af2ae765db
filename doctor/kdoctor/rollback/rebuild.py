"""Builds the recorded environment anew in a folder of its own, to prove that the way back exists."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kdoctor.errors import UsageError
from kdoctor.lock.document import Lock
from kdoctor.probes.process.child import ChildEnd
from kdoctor.rollback.packages import pins

_LINES = 12
"""So many of the installer's last lines are shown."""


class RebuildError(Exception):
    """The recorded environment cannot be built. The message says why, in the installer's words."""


def base_python(lock: Lock, python: str, version: str, environ: Mapping[str, str]) -> str:
    """An interpreter of the recorded release: the given one, or one of the search path.

    Raises:
        UsageError: the lock has no packages or no Python, so there is nothing to build.
        RebuildError: there is no such interpreter.
    """
    recorded = lock.facts.get("python", {}).get("version")
    if recorded is None or not lock.facts.get("packages"):
        raise UsageError("the lock records no Python and packages, so there is no environment to build from it")
    wanted = _minor(recorded)
    if _minor(version) == wanted:
        return python
    found = shutil.which(f"python{wanted}", path=environ.get("PATH"))
    if found is None:
        raise RebuildError(f"the lock was recorded with Python {recorded}, and there is no python{wanted} here")
    return found


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


Run = Callable[[Sequence[str]], ChildEnd]
"""Runs a program to its end, with the deadline and the environment of the caller."""


def rebuild(lock: Lock, python: str, folder: Path, run: Run) -> str:
    """Make a virtual environment with exactly the recorded packages; its interpreter.

    Raises:
        RebuildError: the environment could not be made, or a package cannot be had any more.
        ChildrenEnded: the run was interrupted.
    """
    end = run([python, "-m", "venv", str(folder)])
    if not end.ok:
        raise RebuildError(f"a virtual environment of {python} could not be made: {_last_lines(end)}")
    made = str(folder / "bin" / "python")
    listed = folder / "pins.txt"
    listed.write_text("".join(f"{pin}\n" for pin in pins(lock)), encoding="utf-8")
    # Without dependencies: the lock lists every distribution, so what is not in it must not come along.
    install = [made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"]
    end = run([*install, "-r", str(listed)])
    if not end.ok:
        raise RebuildError(f"the recorded packages cannot be installed: {_last_lines(end)}")
    return made


def _last_lines(end: ChildEnd) -> str:
    said = [line for line in (end.stderr or end.chatter).splitlines() if line.strip()]
    return "\n".join([end.describe() if end.timed_out else f"status {end.exit_code}", *said[-_LINES:]])
