"""The database of runs.

Concurrent runs write in turn. A run is written in one transaction, so that a killed process or a full disk leaves the
database as it was.
"""

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kdoctor.errors import UsageError
from kdoctor.history.location import is_on_network

_BUSY_S = 10.0
"""Seconds to wait for another run that is writing."""

STEPS = (
    # 1: runs, with the conclusion of the previous run of the series (before); their reports, in a table that lists do
    # not read; and the checks whose status changed.
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
    # 2: numbers for trends.
    """
    CREATE TABLE measures (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        value REAL NOT NULL,
        PRIMARY KEY (run, name)
    ) WITHOUT ROWID;
    """,
    # 3: locks of passing runs, for rollbacks. Equal locks are stored once.
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
    # 4: diagnoses of logs, each with the run before it.
    """
    CREATE TABLE diagnoses (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        run INTEGER REFERENCES runs (id) ON DELETE CASCADE,
        made_at TEXT NOT NULL,
        host TEXT NOT NULL,
        conclusion TEXT NOT NULL,
        cause TEXT NOT NULL,
        logs TEXT NOT NULL,
        diagnosis BLOB NOT NULL
    );
    CREATE INDEX diagnoses_of_run ON diagnoses (run);
    """,
)
"""Upgrades from each version of the database to the next. A released step never changes."""

VERSION = len(STEPS)

_MOVE_AWAY = "Move the file away. The next run creates a new one."


class HistoryError(UsageError):
    """The history cannot be read or written."""


@contextlib.contextmanager
def opened(place: Path, *, create: bool) -> Iterator[sqlite3.Connection]:
    """Open the database and upgrade it to this version.

    Args:
        place: its file.
        create: create a missing file and its folder. If false, a missing database is an empty one in memory.

    Raises:
        HistoryError: the database cannot be used.
    """
    with _as_history_errors(place):
        connection = _connect(place, create=create)
        try:
            _upgrade(connection, place)
        except BaseException:
            connection.close()
            raise
    try:
        with _as_history_errors(place, _DATABASE_ERRORS):
            yield connection
    finally:
        connection.close()


_DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""The second is raised for the message of an error that quotes a damaged name."""


@contextlib.contextmanager
def _as_history_errors(
    place: Path, kinds: tuple[type[Exception], ...] = (*_DATABASE_ERRORS, OSError)
) -> Iterator[None]:
    try:
        yield
    except kinds as error:
        raise HistoryError(f"cannot use the history {place}: {_describe(error)}", hint=_hint(error)) from error


def _connect(place: Path, *, create: bool) -> sqlite3.Connection:
    if not create and not place.exists():
        return sqlite3.connect(":memory:", isolation_level=None)
    if create:
        # Private, as the XDG Base Directory Specification asks for, too.
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    connection = sqlite3.connect(place, timeout=_BUSY_S, isolation_level=None)
    try:
        if create:
            _choose_journal(connection, "DELETE" if is_on_network(place.parent) else "WAL")
        # With a write-ahead log, a power failure may lose the last runs but does not damage the file.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _choose_journal(connection: sqlite3.Connection, mode: str) -> None:
    """Change how the file is written. It does not wait for another run that uses it; a later run does it."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(1000 * _BUSY_S)}")


def _upgrade(connection: sqlite3.Connection, place: Path) -> None:
    version = _version(connection)
    if version > VERSION:
        hint = "A newer kdoctor wrote it. Upgrade kdoctor, or name another file in KDOCTOR_HISTORY."
        raise HistoryError(f"the history {place} has version {version}; this kdoctor reads {VERSION}", hint=hint)
    if version < 0:
        raise HistoryError(f"the history {place} is damaged: version {version}", hint=_MOVE_AWAY)
    if version == VERSION:
        return
    with writing(connection):
        # Another run may have upgraded it in the meantime.
        for number in range(_version(connection), VERSION):
            for statement in filter(str.strip, STEPS[number].split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number + 1}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextlib.contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that waits for other writers when it begins, and is rolled back if it fails."""
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
    """Add a run, with the checks whose status differs from the previous run of its series.

    Args:
        connection: the database, in a transaction.
        run: the columns of ``runs`` without ``before``.
        report: the packed report.
        statuses: check id to status.
        measures: name to value.

    Returns:
        The run's number.
    """
    conclusion, before = _run_before(connection, run)
    row = {**run, "before": conclusion}
    columns, marks = ", ".join(row), ", ".join("?" for _ in row)
    statement = f"INSERT INTO runs ({columns}) VALUES ({marks})"  # noqa: S608 - column names are constants
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
        tuple(run[name] for name in ("host", "checklist", "target", "scope")),
    ).fetchone()
    if row is None:
        return None, {}
    try:
        return str(row[0]), {str(result["id"]): str(result["status"]) for result in unpack(row[1])["results"]}
    except (HistoryError, LookupError, TypeError):  # a damaged run must not keep the next ones out
        return str(row[0]), {}


def prune(connection: sqlite3.Connection, keep: int) -> None:
    """Delete all but the newest runs. New runs reuse their space in the file."""
    row = connection.execute("SELECT id FROM runs ORDER BY id DESC LIMIT 1 OFFSET ?", (keep,)).fetchone()
    if row:
        connection.execute("DELETE FROM runs WHERE id <= ?", row)
        connection.execute("DELETE FROM locks WHERE digest NOT IN (SELECT digest FROM green)")


def _describe(error: Exception) -> str:
    return str(error.strerror or error) if isinstance(error, OSError) else str(error)


def _hint(error: Exception) -> str | None:
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return _MOVE_AWAY
    return None


def pack(report: str) -> bytes:
    """A JSON report, compressed."""
    return zlib.compress(json.dumps(json.loads(report), separators=(",", ":")).encode())


def unpack(blob: Any) -> dict[str, Any]:
    """The JSON report that :func:`pack` compressed.

    Raises:
        HistoryError: it is damaged.
    """
    try:
        report = json.loads(zlib.decompress(blob))
    except (zlib.error, TypeError, ValueError, RecursionError) as error:
        raise HistoryError(f"a run of the history is damaged: {error}") from error
    if not isinstance(report, dict):
        raise HistoryError("a run of the history is damaged: its report is not a mapping")
    return report
