"""Questions to the history."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kdoctor.errors import UsageError
from kdoctor.history.packed import unpacked

RECENT = 200
"""Flaky checks are looked for in so many runs."""
FLIPS = 3
"""Red, green and red again is no repair: from so many changes on a check is flaky."""


class Run(NamedTuple):
    """One run, as a list shows it."""

    id: int
    started_at: str
    conclusion: str
    before: str | None
    """The conclusion of the run of its series before it."""
    duration_s: float
    checklist: str
    scope: str

    @property
    def first_red(self) -> bool:
        """Whether the run before it was green, and this one is not."""
        return self.before == "pass" and self.conclusion == "fail"


@dataclass(frozen=True, kw_only=True)
class Flaky:
    """A check that goes to and fro."""

    check: str
    checklist: str
    host: str
    flips: int


@dataclass(frozen=True, kw_only=True)
class Trend:
    """One measure over the runs of a series, the oldest first."""

    name: str
    values: tuple[float, ...]


_COLUMNS = ", ".join(Run._fields)


def runs(connection: sqlite3.Connection, last: int, checklist: str | None) -> list[Run]:
    """The newest runs (all, for 0), the oldest first."""
    where, values = ("WHERE checklist = ? ", [checklist]) if checklist else ("", [])
    statement = f"SELECT {_COLUMNS} FROM runs {where}ORDER BY id DESC LIMIT ?"  # noqa: S608 - no value stands in it
    rows = connection.execute(statement, (*values, last or -1)).fetchall()
    rows.reverse()
    return list(map(Run._make, rows))


def changes(connection: sqlite3.Connection, since: int) -> dict[int, list[tuple[str, str, str]]]:
    """By run, from that one on: which checks changed, from what to what."""
    found: dict[int, list[tuple[str, str, str]]] = {}
    for run, *change in connection.execute("SELECT run, check_id, old, new FROM changes WHERE run >= ?", (since,)):
        found.setdefault(run, []).append((change[0], change[1], change[2]))
    return found


def flaky(connection: sqlite3.Connection) -> list[Flaky]:
    """Checks that went between pass and fail at least three times in the last 200 runs, the most restless first."""
    rows = connection.execute(
        "SELECT check_id, checklist, host, COUNT(*) AS flips FROM changes JOIN runs ON id = run "
        "WHERE run > (SELECT MAX(id) FROM runs) - ? AND old IN ('pass', 'fail') AND new IN ('pass', 'fail') "
        "GROUP BY host, checklist, target, scope, check_id HAVING flips >= ? ORDER BY flips DESC, check_id",
        (RECENT, FLIPS),
    )
    return [Flaky(check=check, checklist=checklist, host=host, flips=flips) for check, checklist, host, flips in rows]


def trends(connection: sqlite3.Connection, newest: Run, last: int) -> list[Trend]:
    """The measures of the newest run's series over its last runs."""
    rows = connection.execute(
        "SELECT name, value FROM measures JOIN (SELECT id FROM runs WHERE (host, checklist, target, scope) = "
        "(SELECT host, checklist, target, scope FROM runs WHERE id = ?) ORDER BY id DESC LIMIT ?) ON id = run "
        "ORDER BY name, id",
        (newest.id, last),
    )
    found: dict[str, list[float]] = {}
    for name, value in rows:
        found.setdefault(name, []).append(value)
    return [Trend(name=name, values=tuple(values)) for name, values in found.items() if len(values) > 1]


def report_of(connection: sqlite3.Connection, run: int) -> dict[str, Any]:
    """The JSON report of a run; a negative number counts from the newest, -1.

    Raises:
        UsageError: there is no such run.
    """
    number = run
    if run < 0:
        row = connection.execute("SELECT id FROM runs ORDER BY id DESC LIMIT 1 OFFSET ?", (-run - 1,)).fetchone()
        number = row[0] if row else run
    row = connection.execute("SELECT report FROM reports WHERE run = ?", (number,)).fetchone()
    if row is None:
        low, high = connection.execute("SELECT MIN(id), MAX(id) FROM runs").fetchone()
        kept = "there are none yet" if low is None else f"there are {low} to {high}"
        raise UsageError(f"there is no run {run} in the history: {kept}", hint="See them with: kdoctor history")
    return {"run": number, **unpacked(row[0])}


def export(connection: sqlite3.Connection) -> Iterator[str]:
    """Each run as one line of JSON, the oldest first: its report, with its number, host and scope."""
    rows: Sequence[Any]
    for rows in connection.execute("SELECT run, host, scope, report FROM reports JOIN runs ON id = run ORDER BY run"):
        run, host, scope, report = rows
        yield json.dumps({"run": run, "host": host, "scope": scope, **unpacked(report)}) + "\n"
