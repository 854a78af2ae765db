"""Keeps diagnoses in the history, each with the run before it."""

import datetime as dt
import platform
import sqlite3
from collections.abc import Iterable, Mapping

from kdoctor.errors import UsageError
from kdoctor.history.location import history_file
from kdoctor.history.read import NO_RUN
from kdoctor.history.store import opened, pack, writing

_COLUMNS = "run, made_at, host, conclusion, cause, logs, diagnosis"


def keep_diagnosis(
    *, conclusion: str, cause: str, logs: Iterable[str], document: str, environ: Mapping[str, str]
) -> str | None:
    """Record a diagnosis. A history that cannot be written does not fail the command.

    Args:
        conclusion: how it ended.
        cause: the id of the first cause; empty without one.
        logs: names of the logs.
        document: all of it, as JSON.
        environ: names the database.

    Returns:
        Why it could not be recorded, or None.
    """
    host = platform.node()
    made_at = dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
    row = (made_at, host, conclusion, cause, ", ".join(logs), pack(document))
    try:
        with opened(history_file(environ), create=True) as connection, writing(connection):
            before = connection.execute("SELECT max(id) FROM runs WHERE host = ?", (host,)).fetchone()[0]
            connection.execute(
                f"INSERT INTO diagnoses ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - constants
                (before, *row),
            )
    except UsageError as error:
        return f"this diagnosis is not in the history: {error.message}"
    return None


def diagnoses(connection: sqlite3.Connection, since: int) -> dict[int, list[str]]:
    """The diagnoses after each run, starting with run ``since``: time, cause and logs.

    Those before the first run are included if no run is before ``since``.
    """
    found: dict[int, list[str]] = {}
    rows = connection.execute(
        "SELECT coalesce(run, ?), made_at, conclusion, cause, logs FROM diagnoses WHERE run >= ?"
        " OR run IS NULL AND NOT EXISTS (SELECT 1 FROM runs WHERE id < ?) ORDER BY id",
        (NO_RUN, since, since),
    )
    for run, made_at, conclusion, cause, logs in rows:
        found.setdefault(run, []).append(f"{made_at[:19]} diagnosed {logs}: {cause or conclusion}")
    return found
