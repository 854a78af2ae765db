"""Builds the recorded environment in a temporary folder, to prove that a rollback is possible."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kdoctor.commands.packages import minor
from kdoctor.errors import UsageError
from kdoctor.lock.document import Lock
from kdoctor.probes.process.child import ChildEnd
from kdoctor.rollback.packages import pins

_LINES = 12
"""Number of the installer's last lines to show."""


class RebuildError(Exception):
    """The recorded environment cannot be built. The message ends with the installer's output."""


def base_python(lock: Lock, python: str, version: str, environ: Mapping[str, str]) -> str:
    """An interpreter of the recorded minor release: the given one, or one on the search path.

    Raises:
        UsageError: the lock has no packages or no Python.
        RebuildError: no such interpreter was found.
    """
    recorded = lock.facts.get("python", {}).get("version")
    if recorded is None or not lock.facts.get("packages"):
        raise UsageError("the lock records no Python or no packages, so no environment can be built from it")
    wanted = minor(recorded)
    if minor(version) == wanted:
        return python
    found = shutil.which(f"python{wanted}", path=environ.get("PATH"))
    if found is None:
        raise RebuildError(f"the lock was recorded with Python {recorded}, but python{wanted} was not found")
    return found


Run = Callable[[Sequence[str]], ChildEnd]
"""Runs a program to its end, with the deadline and the environment of the caller."""


def rebuild(lock: Lock, python: str, folder: Path, run: Run) -> str:
    """Create a virtual environment with exactly the recorded packages, and return its interpreter.

    Raises:
        RebuildError: the environment could not be created, or a package is no longer available.
        ChildrenEnded: the run was interrupted.
    """
    end = run([python, "-m", "venv", str(folder)])
    if not end.ok:
        raise RebuildError(f"could not create a virtual environment with {python}: {_last_lines(end)}")
    made = str(folder / "bin" / "python")
    listed = folder / "pins.txt"
    listed.write_text("".join(f"{pin}\n" for pin in pins(lock)), encoding="utf-8")
    # The lock lists every distribution, so dependencies must not add others.
    install = [made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"]
    end = run([*install, "-r", str(listed)])
    if not end.ok:
        raise RebuildError(f"the recorded packages could not be installed: {_last_lines(end)}")
    return made


def _last_lines(end: ChildEnd) -> str:
    said = [line for line in (end.stderr or end.chatter).splitlines() if line.strip()]
    return "\n".join([end.describe() if end.timed_out else f"status {end.exit_code}", *said[-_LINES:]])
