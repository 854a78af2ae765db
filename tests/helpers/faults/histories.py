"""Faults of the history. The report comes first, and the exit code is that of the run."""

import sqlite3
from pathlib import Path

from helpers.command import kdoctor
from helpers.faults.running import QUICK, Fault

NOTE = "not in the history"
READY = "READY in"


def _garbage(folder: Path) -> None:
    (folder / "history.db").write_bytes(b"no database " * 1000)


def _version(number: int, folder: Path) -> None:
    with sqlite3.connect(folder / "history.db") as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    connection.close()


def _future(folder: Path) -> None:
    _version(99, folder)


def _report(blob: object, folder: Path) -> None:
    """A history of one run, whose report is damaged."""
    history = folder / "history.db"
    kdoctor(*QUICK, cwd=folder, KDOCTOR_HISTORY=str(history), KDOCTOR_NO_HISTORY="")
    with sqlite3.connect(history) as connection:
        connection.execute("UPDATE reports SET report = ?", (blob,))
    connection.close()


def _no_zlib(folder: Path) -> None:
    _report(b"xx", folder)


HISTORIES: dict[str, Fault] = {
    "history: garbage": Fault(exits=(0,), says=NOTE, prepare=_garbage, slow=True),
    "history: from the future": Fault(exits=(0,), says=NOTE, prepare=_future, slow=True),
    "history: a damaged run": Fault(exits=(0,), says=READY, prepare=_no_zlib),
    "history: a damaged run is shown": Fault(
        exits=(2,), says="damaged", prepare=_no_zlib, arguments=("history", "show", "-1"), slow=True
    ),
}
