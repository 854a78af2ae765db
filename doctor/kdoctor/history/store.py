"""The database: opening, upgrading, writing a run, keeping the size bounded.

Safe under concurrent runs (one writer at a time, the others wait), under a killed process and a full disk (a run is
written in one transaction, whole or not at all).
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from kdoctor.errors import UsageError
from kdoctor.history.location import is_on_network
from kdoctor.history.packed import statuses_of, unpacked

_BUSY_S = 10.0
"""So long a run waits for another one that is writing."""

STEPS = (
    # 1: runs (before: the conclusion of the run of its series before it), their whole reports apart, so that a list
    # need not read them, and in which checks each differs from the one before it.
    """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        started_at TEXT NOT NULL,
        duration_s REAL NOT NULL,
        host TEXT NOT NULL,
        checklist TEXT NOT NULL,
        checklist_version INTEGER NOT NULL,
        target TEXT NOT NULL,
        scope TEXT NOT NULL,
        kdoctor TEXT NOT NULL,
        conclusion TEXT NOT NULL,
        exit_code INTEGER NOT NULL,
        reason TEXT NOT NULL,
        passed INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        skipped INTEGER NOT NULL,
        unknown INTEGER NOT NULL,
        before TEXT
    );
    CREATE INDEX runs_of_series ON runs (host, checklist, target, scope, id);
    CREATE TABLE reports (
        run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        report BLOB NOT NULL
    );
    CREATE TABLE changes (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        check_id TEXT NOT NULL,
        old TEXT NOT NULL,
        new TEXT NOT NULL,
        PRIMARY KEY (run, check_id)
    ) WITHOUT ROWID;
    """,
    # 2: what the trainings measured, for trends.
    """
    CREATE TABLE measures (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        value REAL NOT NULL,
        PRIMARY KEY (run, name)
    ) WITHOUT ROWID;
    """,
    # 3: what green runs found, as locks, for the way back; equal ones once.
    """
    CREATE TABLE locks (
        digest TEXT PRIMARY KEY,
        lock BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE green (
        run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        digest TEXT NOT NULL REFERENCES locks (digest)
    );
    CREATE INDEX green_by_lock ON green (digest);
    """,
)
"""How to get from each version of the database to the next. A step is never changed once it was released."""

VERSION = len(STEPS)


class HistoryError(UsageError):
    """The history cannot be read or written. The message names the file and says why."""


@contextlib.contextmanager
def opened(place: Path, *, create: bool) -> Iterator[sqlite3.Connection]:
    """The database, upgraded to this version.

    Args:
        place: its file.
        create: whether to make it, with its folder, if there is none. Otherwise it is an empty one in memory.

    Raises:
        HistoryError: it cannot be used, and why.
    """
    with _in_words(place):
        connection = _connect(place, create=create)
        try:
            _upgrade(connection, place)
        except BaseException:
            connection.close()
            raise
    try:
        with _in_words(place, (sqlite3.Error,)):
            yield connection
    finally:
        connection.close()


@contextlib.contextmanager
def _in_words(place: Path, kinds: tuple[type[Exception], ...] = (sqlite3.Error, OSError)) -> Iterator[None]:
    try:
        yield
    except kinds as error:
        raise HistoryError(f"the history {place} cannot be used: {_words(error)}", hint=_hint(error)) from error


def _connect(place: Path, *, create: bool) -> sqlite3.Connection:
    if not create and not place.exists():
        return sqlite3.connect(":memory:", isolation_level=None)
    if create:
        # What the checks found is nobody else's business (the specification asks for 0700, too).
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    connection = sqlite3.connect(place, timeout=_BUSY_S, isolation_level=None)
    try:
        if create:
            connection.execute(f"PRAGMA journal_mode = {'DELETE' if is_on_network(place.parent) else 'WAL'}")
        # With a write-ahead log this loses nothing but the last runs when the power fails, and never breaks the file.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _upgrade(connection: sqlite3.Connection, place: Path) -> None:
    version = _version(connection)
    if version > VERSION:
        hint = f"It was written by a newer kdoctor; upgrade, or name another file in KDOCTOR_HISTORY ({place})."
        raise HistoryError(f"the history {place} has version {version}, and this kdoctor knows {VERSION}", hint=hint)
    if version == VERSION:
        return
    with writing(connection):
        # Another run may have upgraded it meanwhile.
        for number in range(_version(connection), VERSION):
            for statement in filter(str.strip, STEPS[number].split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number + 1}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextlib.contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that waits for the other writers at its beginning, and leaves nothing where it fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def add(
    connection: sqlite3.Connection,
    run: Mapping[str, object],
    report: bytes,
    statuses: Mapping[str, str],
    measures: Mapping[str, float],
) -> int:
    """Keep a run, with the checks that differ from the run of its series before it.

    Args:
        connection: the database, in a transaction.
        run: the columns of ``runs``, ``before`` left out.
        report: the packed report.
        statuses: check id to status.
        measures: name to value.
    """
    conclusion, before = _run_before(connection, run)
    row = {**run, "before": conclusion}
    columns, marks = ", ".join(row), ", ".join("?" for _ in row)
    statement = f"INSERT INTO runs ({columns}) VALUES ({marks})"  # noqa: S608 - the columns' names are ours
    number = int(connection.execute(statement, tuple(row.values())).lastrowid or 0)
    connection.execute("INSERT INTO reports VALUES (?, ?)", (number, report))
    changed = [
        (number, name, before[name], status)
        for name, status in statuses.items()
        if name in before and before[name] != status
    ]
    connection.executemany("INSERT INTO changes VALUES (?, ?, ?, ?)", changed)
    connection.executemany(
        "INSERT INTO measures VALUES (?, ?, ?)", [(number, name, value) for name, value in measures.items()]
    )
    return number


def _run_before(connection: sqlite3.Connection, run: Mapping[str, object]) -> tuple[str | None, dict[str, str]]:
    """The conclusion and the statuses of the newest run of the same series."""
    row = connection.execute(
        "SELECT conclusion, report FROM runs JOIN reports ON run = id "
        "WHERE host = ? AND checklist = ? AND target = ? AND scope = ? ORDER BY id DESC LIMIT 1",
        series_of(run),
    ).fetchone()
    return (str(row[0]), statuses_of(unpacked(row[1]))) if row else (None, {})


def series_of(run: Mapping[str, object]) -> tuple[object, ...]:
    """What two runs must have in common to be compared: host, checklist, target, scope."""
    return tuple(run[name] for name in ("host", "checklist", "target", "scope"))


def prune(connection: sqlite3.Connection, keep: int) -> None:
    """Leave the newest runs. Their file's space is taken again by the next ones."""
    row = connection.execute("SELECT id FROM runs ORDER BY id DESC LIMIT 1 OFFSET ?", (keep,)).fetchone()
    if row:
        connection.execute("DELETE FROM runs WHERE id <= ?", row)
        connection.execute("DELETE FROM locks WHERE digest NOT IN (SELECT digest FROM green)")


def _words(error: Exception) -> str:
    return str(error.strerror or error) if isinstance(error, OSError) else str(error)


def _hint(error: Exception) -> str | None:
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return "Move the file away; the next run begins a new one. kdoctor leaves it as it is."
    return None
