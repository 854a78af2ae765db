"""What the last green run found, kept as a lock: the way back where nobody recorded one."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from dataclasses import dataclass

from kdoctor.errors import UsageError
from kdoctor.lock.document import Lock, loads, text_of

_HINT = "Name a lock with --to, or record one: kdoctor checklist record"


@dataclass(frozen=True, kw_only=True)
class Series:
    """Which runs may answer: of this host, checklist and interpreter."""

    host: str
    checklist: str
    target: str


def keep_green(connection: sqlite3.Connection, run: int, lock: Lock) -> None:
    """Keep what a green run found; equal findings of many runs take the place of one.

    What was measured differs from run to run and is in the report; the date is the run's.
    """
    text = text_of(lock.model_copy(update={"recorded": "", "measured": {}})).encode()
    digest = hashlib.sha256(text).hexdigest()
    connection.execute("INSERT OR IGNORE INTO locks VALUES (?, ?)", (digest, zlib.compress(text)))
    connection.execute("INSERT INTO green VALUES (?, ?)", (run, digest))


def last_green(connection: sqlite3.Connection, series: Series) -> tuple[str, Lock]:
    """The last green run of a series that was not narrowed: its name in words, and what it found.

    Raises:
        UsageError: there is none, and why.
        LockError: what was kept is damaged.
    """
    row = connection.execute(
        "SELECT id, started_at, lock FROM runs JOIN green ON run = id JOIN locks USING (digest) "
        "WHERE host = ? AND checklist = ? AND target = ? AND scope = '' ORDER BY id DESC LIMIT 1",
        (series.host, series.checklist, series.target),
    ).fetchone()
    if row is None:
        raise UsageError(_why_none(connection, series), hint=_HINT)
    name = f"run {row[0]} of the history"
    return name, loads(_unpacked(row[2], name), name).model_copy(update={"recorded": row[1]})


def _unpacked(blob: bytes, name: str) -> bytes:
    try:
        return zlib.decompress(blob)
    except zlib.error as error:
        raise UsageError(f"{name} is damaged: {error}", hint=_HINT) from error


def _why_none(connection: sqlite3.Connection, series: Series) -> str:
    """Why no run can answer: the nearest thing that there is."""
    runs = connection.execute(
        "SELECT id, started_at, target, scope, conclusion FROM runs WHERE host = ? AND checklist = ? ORDER BY id DESC",
        (series.host, series.checklist),
    ).fetchall()
    name = series.checklist
    if not runs:
        return f"no run of {name} on this host is in the history, so no green one is known"
    green = [run for run in runs if run[4] == "pass"]
    if not green:
        return f"none of the {len(runs)} runs of {name} on this host was green"
    mine = [run for run in green if run[2] == series.target]
    if not mine:
        number, _, target, *_ = green[0]
        return f"the last green run of {name} ({number}) examined {target}, and not {series.target}: see --python"
    whole = [run for run in mine if not run[3]]
    if not whole:
        number, _, _, scope, _ = mine[0]
        return f"the last green run of {name} ({number}) was narrowed ({scope}), and shows less than a whole one"
    number, started_at, *_ = whole[0]
    return (
        f"the last green run of {name} ({number}, {started_at}) was kept by an older kdoctor, without what a way back "
        "needs; the next green run will have it"
    )
