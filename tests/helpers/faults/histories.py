"""Faults of the history. The report comes first, and the exit code is that of the run."""

import sqlite3
import zlib
from pathlib import Path

from helpers.command import kdoctor
from helpers.faults.running import QUICK, Fault

NOTE = "not in the history"
READY = "READY in"


def _garbage(folder: Path) -> None:
    (folder / "history.db").write_bytes(b"no database " * 1000)


def _folder(folder: Path) -> None:
    (folder / "history.db").mkdir()


def _version(number: int, folder: Path) -> None:
    with sqlite3.connect(folder / "history.db") as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    connection.close()


def _before(folder: Path) -> None:
    _version(-2, folder)


def _future(folder: Path) -> None:
    _version(99, folder)


def _empty_tables(folder: Path) -> None:
    _version(3, folder)


def _report(blob: object, folder: Path) -> None:
    """A history of one run, whose report is damaged."""
    history = folder / "history.db"
    kdoctor(*QUICK, cwd=folder, KDOCTOR_HISTORY=str(history), KDOCTOR_NO_HISTORY="")
    with sqlite3.connect(history) as connection:
        connection.execute("UPDATE reports SET report = ?", (blob,))
    connection.close()


def _no_zlib(folder: Path) -> None:
    _report(b"xx", folder)


def _no_mapping(folder: Path) -> None:
    _report(zlib.compress(b"[1]"), folder)


def _text(folder: Path) -> None:
    _report("text", folder)


HISTORIES: dict[str, Fault] = {
    "history: garbage": Fault(exits=(0,), says=NOTE, prepare=_garbage, slow=True),
    "history: a folder": Fault(exits=(0,), says=NOTE, prepare=_folder, slow=True),
    "history: a version below 0": Fault(exits=(0,), says=NOTE, prepare=_before, slow=True),
    "history: from the future": Fault(exits=(0,), says=NOTE, prepare=_future, slow=True),
    "history: no tables": Fault(exits=(0,), says=NOTE, prepare=_empty_tables, slow=True),
    "history: a damaged run": Fault(exits=(0,), says=READY, prepare=_no_zlib),
    "history: a run that is a list": Fault(exits=(0,), says=READY, prepare=_no_mapping, slow=True),
    "history: a run that is a text": Fault(exits=(0,), says=READY, prepare=_text, slow=True),
    "history: a damaged run is shown": Fault(
        exits=(2,), says="damaged", prepare=_no_zlib, arguments=("history", "show", "-1"), slow=True
    ),
}
