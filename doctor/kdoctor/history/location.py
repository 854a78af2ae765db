"""Location and size of the run history."""

import sys
from collections.abc import Mapping
from pathlib import Path

from kdoctor.errors import UsageError

PLACE_VARIABLE = "KDOCTOR_HISTORY"
"""Path of the database."""
OFF_VARIABLE = "KDOCTOR_NO_HISTORY"
"""Any value but 0 turns the history off."""
KEEP_VARIABLE = "KDOCTOR_HISTORY_KEEP"
"""Number of runs to keep."""
KEEP = 10_000

_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "afs", "9p", "fuse.sshfs")


def is_off(environ: Mapping[str, str]) -> bool:
    """Whether the environment turns the history off."""
    return environ.get(OFF_VARIABLE, "0") not in ("", "0")


def history_file(environ: Mapping[str, str]) -> Path:
    """The database: ``KDOCTOR_HISTORY``, or ``history.sqlite`` in the user's state folder.

    That is ``$XDG_STATE_HOME/kdoctor`` or ``~/.local/state/kdoctor`` (XDG Base Directory Specification), on macOS
    ``~/Library/Application Support/kdoctor``, on Windows ``%LOCALAPPDATA%/kdoctor``.

    Raises:
        UsageError: no home folder is known.
    """
    if environ.get(PLACE_VARIABLE):
        return Path(environ[PLACE_VARIABLE])
    # The specification says to ignore a relative path.
    stated = environ.get("XDG_STATE_HOME", "")
    if stated and Path(stated).is_absolute():
        return Path(stated) / "kdoctor" / "history.sqlite"
    try:
        return _state(environ) / "kdoctor" / "history.sqlite"
    except RuntimeError as error:
        hint = f"Name a file in {PLACE_VARIABLE}, or use --no-history."
        raise UsageError(f"no folder for the history: {error}", hint=hint) from None


def _state(environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ".local" / "state"


def runs_to_keep(environ: Mapping[str, str]) -> int:
    """``KDOCTOR_HISTORY_KEEP``, or 10,000.

    Raises:
        UsageError: it is not a number of runs.
    """
    stated = environ.get(KEEP_VARIABLE, "")
    if not stated:
        return KEEP
    if not (stated.isascii() and stated.isdecimal() and int(stated)):
        raise UsageError(f"{KEEP_VARIABLE}={stated}: expected a number of runs, such as {KEEP}")
    return int(stated)


def is_on_network(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Whether a folder is on a network file system, where a write-ahead log is not safe.

    Source: https://www.sqlite.org/wal.html ("WAL does not work over a network filesystem").
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        resolved = folder.resolve()
    except OSError:
        return False
    kinds: dict[Path, str] = {}
    for line in lines:
        parts = line.split(" ")
        if len(parts) > 2:  # noqa: PLR2004 - device, mount point, type
            kinds[Path(parts[1].replace("\\040", " "))] = parts[2]
    return next((kinds[path] in _NETWORK for path in (resolved, *resolved.parents) if path in kinds), False)
