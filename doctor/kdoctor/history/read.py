"""Queries of the history."""

import json
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from kdoctor.errors import UsageError
from kdoctor.history.store import unpack
from kdoctor.records import record

NO_RUN = 0
"""The run of diagnoses that were kept before the first run."""
_SEARCHED = 20
"""Number of runs that are searched for a line of a report."""
RECENT = 200
"""Number of runs that are searched for flaky checks."""
LEAST_FOR_TREND = 5
"""Number of runs that a trend needs. Noise alone makes 1 in 12 series of 4 runs rise or fall at every step (2 / 4!),
and 1 in 60 of 5 runs."""
_LARGEST = 2**62
"""Beyond the number of any run, and below the largest number of SQLite (2**63 - 1)."""
FLIPS = 3
"""Changes between pass and fail that make a check flaky. Two may be a failure and its fix."""


class Run(NamedTuple):
    """One run, as a list shows it."""

    id: int
    started_at: str
    conclusion: str
    before: str | None
    """The conclusion of the previous run of its series."""
    duration_s: float
    checklist: str
    scope: str
    host: str = ""
    target: str = ""


@record
class Flaky:
    """A check that keeps changing between pass and fail."""

    check: str
    checklist: str
    host: str
    flips: int


@record
class Trend:
    """One measure over the runs of a series, oldest first."""

    name: str
    values: tuple[float, ...]


_COLUMNS = ", ".join(Run._fields)


def runs(connection: sqlite3.Connection, last: int, checklist: str | None) -> list[Run]:
    """The newest runs, oldest first; 0 means all."""
    where, values = ("WHERE checklist = ? ", [checklist]) if checklist else ("", [])
    statement = f"SELECT {_COLUMNS} FROM runs {where}ORDER BY id DESC LIMIT ?"  # noqa: S608 - it contains no value
    return list(map(Run._make, connection.execute(statement, (*values, last or -1))))[::-1]


def changes(connection: sqlite3.Connection, since: int) -> dict[int, list[tuple[str, str, str]]]:
    """Check, old and new status of each change, by run, starting with run ``since``."""
    found: dict[int, list[tuple[str, str, str]]] = {}
    for run, *change in connection.execute("SELECT run, check_id, old, new FROM changes WHERE run >= ?", (since,)):
        found.setdefault(run, []).append((change[0], change[1], change[2]))
    return found


def flaky(connection: sqlite3.Connection) -> list[Flaky]:
    """Checks that changed at least three times in the last 200 runs, most changes first."""
    rows = connection.execute(
        "SELECT check_id, checklist, host, COUNT(*) AS flips FROM changes JOIN runs ON id = run "
        "WHERE run > (SELECT MAX(id) FROM runs) - ? AND old IN ('pass', 'fail') AND new IN ('pass', 'fail') "
        "GROUP BY host, checklist, target, scope, check_id HAVING flips >= ? ORDER BY flips DESC, check_id",
        (RECENT, FLIPS),
    )
    return [Flaky(check=check, checklist=checklist, host=host, flips=flips) for check, checklist, host, flips in rows]


def trends(connection: sqlite3.Connection, newest: Run, last: int) -> list[Trend]:
    """The measures of the newest run's series over its last runs, however few."""
    rows = connection.execute(
        "SELECT name, value FROM measures JOIN (SELECT id FROM runs WHERE (host, checklist, target, scope) = "
        "(SELECT host, checklist, target, scope FROM runs WHERE id = ?) ORDER BY id DESC LIMIT ?) ON id = run "
        "ORDER BY name, id",
        (newest.id, last),
    )
    found: dict[str, list[float]] = {}
    for name, value in rows:
        found.setdefault(name, []).append(value)
    return [Trend(name=name, values=tuple(values)) for name, values in found.items()]


def passing_durations(connection: sqlite3.Connection, host: str, checklist: str, scope: str) -> list[float]:
    """Seconds that the newest passing runs of this kind took on a host, in any environment."""
    rows = connection.execute(
        "SELECT duration_s FROM runs WHERE (host, checklist, scope, conclusion) = (?, ?, ?, 'pass') "
        "ORDER BY id DESC LIMIT ?",
        (host, checklist, scope, LEAST_FOR_TREND),
    )
    return [duration for (duration,) in rows]


def report_of(connection: sqlite3.Connection, run: int) -> dict[str, Any]:
    """The JSON report of a run; a negative number counts from the newest, -1.

    Raises:
        UsageError: the run does not exist.
    """
    number = max(-_LARGEST, min(run, _LARGEST))
    if run < 0:
        row = connection.execute("SELECT id FROM runs ORDER BY id DESC LIMIT 1 OFFSET ?", (-number - 1,)).fetchone()
        number = row[0] if row else number
    row = connection.execute("SELECT report FROM reports WHERE run = ?", (number,)).fetchone()
    if row is None:
        low, high = connection.execute("SELECT MIN(id), MAX(id) FROM runs").fetchone()
        if low is None:
            raise UsageError("the history has no runs", hint="kdoctor check adds one.")
        raise UsageError(
            f"no run {run} in the history; it has runs {low} to {high}", hint="To list them: kdoctor history"
        )
    return {"run": number, **unpack(row[0])}


def saying(connection: sqlite3.Connection, line: str) -> str:
    """The check whose finding or evidence in a new run a line of its report, which may be cut, shows; else empty."""
    rows = connection.execute("SELECT report FROM reports ORDER BY run DESC LIMIT ?", (_SEARCHED,))
    for result in (result for (packed,) in rows for result in unpack(packed)["results"]):
        for finding in result["findings"]:
            said = [text for text in (finding["brief"], finding["observed"]) if text]
            if any(text in line or line in f"{finding['subject']}: {text}" for text in said):
                return str(result["id"])
        if any(line in one["brief"] for one in result["evidence"]):
            return str(result["id"])
    return ""


def export(connection: sqlite3.Connection) -> Iterator[str]:
    """Each run as one line of JSON, oldest first: its report with its number, host and scope."""
    rows = connection.execute("SELECT run, host, scope, report FROM reports JOIN runs ON id = run ORDER BY run")
    for run, host, scope, report in rows:
        yield json.dumps({"run": run, "host": host, "scope": scope, **unpack(report)}) + "\n"
