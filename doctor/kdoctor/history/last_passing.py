"""The last passing run: when it started, and what it found, kept as a lock."""

import hashlib
import platform
import sqlite3
import zlib
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from kdoctor.commands.shell import quoted
from kdoctor.errors import UsageError
from kdoctor.history.location import history_file
from kdoctor.history.store import opened
from kdoctor.lock.document import Lock, loads, text_of
from kdoctor.records import record
from kdoctor.text.lists import counted

_CHECK = "To see what fails: kdoctor check {}"
_RECORD = "To record a run that can be restored: kdoctor check {}"
_ROLLBACK = "To name its environment: kdoctor rollback {} --to last-passing"


@record
class Series:
    """Runs that can be compared: of one host, checklist and interpreter."""

    host: str
    checklist: str
    target: str
    """Path of the interpreter."""


def keep_lock(connection: sqlite3.Connection, run: int, lock: Lock) -> None:
    """Keep what a passing run found. Runs with equal findings share one lock.

    The measured numbers differ between runs and are in the report. The date is the run's.
    """
    text = text_of(lock.model_copy(update={"recorded": "", "measured": {}})).encode()
    digest = hashlib.sha256(text).hexdigest()
    connection.execute("INSERT OR IGNORE INTO locks VALUES (?, ?)", (digest, zlib.compress(text)))
    connection.execute("INSERT INTO green VALUES (?, ?)", (run, digest))


def last_passing(
    connection: sqlite3.Connection, series: Series, asked: str = "", shipped: Collection[str] = ()
) -> tuple[str, Lock]:
    """The name of the last passing run of a series that was not narrowed (others keep no lock), and what it found.

    Commands name it by the options ``asked``, and another checklist only if it is ``shipped``.

    Raises:
        UsageError: there is none, and why.
        LockError: the kept lock is damaged.
    """
    row = connection.execute(
        "SELECT id, started_at, lock FROM runs JOIN green ON run = id JOIN locks USING (digest) "
        "WHERE host = ? AND checklist = ? AND target = ? ORDER BY id DESC LIMIT 1",
        (series.host, series.checklist, series.target),
    ).fetchone()
    if row is None:
        message, hint = _why_none(connection, series)
        raise UsageError(message, hint=_other_passing(connection, series, shipped) or hint.format(asked))
    name = f"run {row[0]} of the history"
    try:
        text = zlib.decompress(row[2])
    except (zlib.error, TypeError) as error:
        raise UsageError(f"{name} is damaged: {error}", hint=_CHECK.format(asked)) from error
    return name, loads(text, name).model_copy(update={"recorded": row[1]})


def find_lock(environ: Mapping[str, str], series: Series) -> tuple[Lock | None, str]:
    """What the last passing run of a series found, and the run's name; None if the history has no such run."""
    with suppress(UsageError), opened(history_file(environ), create=False) as connection:
        name, lock = last_passing(connection, series)
        return lock, name
    return None, ""  # a broken history is reported when the run is recorded


def find_start(environ: Mapping[str, str], series: Series, scope: str) -> str:
    """When the last passing run of a series with this scope started; empty if the history has no such run."""
    where = {"host": series.host, "checklist": series.checklist, "target": series.target, "scope": scope}
    return _of_last_passing(environ, "started_at", where)


def last_target(environ: Mapping[str, str], checklist: str) -> str:
    """The interpreter that the last passing run of a checklist on this host examined; empty if there is none."""
    return _of_last_passing(environ, "target", {"host": platform.node(), "checklist": checklist})


def _of_last_passing(environ: Mapping[str, str], column: str, where: Mapping[str, str]) -> str:
    statement = (
        f"SELECT {column} FROM runs WHERE ({', '.join(where)}) = ({', '.join('?' * len(where))}) "  # noqa: S608 - names
        "AND conclusion = 'pass' ORDER BY id DESC LIMIT 1"
    )
    with suppress(UsageError), opened(history_file(environ), create=False) as connection:
        return str((connection.execute(statement, (*where.values(),)).fetchone() or [""])[0])
    return ""  # a broken history is reported when the run is recorded


def _other_passing(connection: sqlite3.Connection, series: Series, shipped: Collection[str]) -> str:
    rows = connection.execute(
        "SELECT checklist FROM runs JOIN green ON run = id WHERE host = ? AND target = ? ORDER BY id DESC",
        (series.host, series.target),
    )
    command = "kdoctor rollback --checklist {} --to last-passing"
    return next((f"To restore the last passing run: {command.format(name)}" for (name,) in rows if name in shipped), "")


def _why_none(connection: sqlite3.Connection, series: Series) -> tuple[str, str]:
    """Why the history has no lock for a series, by the run that comes closest; and what to do."""
    runs = connection.execute(
        "SELECT id, started_at, target, scope, conclusion FROM runs WHERE host = ? AND checklist = ? "
        "AND scope NOT LIKE '%--snapshot%' ORDER BY id DESC",  # those are of other machines
        (series.host, series.checklist),
    ).fetchall()
    name = series.checklist
    if not runs:
        return f"the history has no run of {name} on this host", _RECORD
    passing = [run for run in runs if run[4] == "pass"]
    if not passing:
        return f"the history has {counted(len(runs), 'run')} of {name} on this host, and none passed", _CHECK
    of_target = [run for run in passing if run[2] == series.target]
    closest = of_target or passing
    number, started_at, target, scope, _ = next((run for run in closest if not run[3]), closest[0])
    run = f"the last passing run of {name} ({number}"
    if not of_target:
        there = f"{_ROLLBACK} --python {quoted(target).replace('{', '{{').replace('}', '}}')}"
        return f"{run}) examined {target}, not {series.target}", _CHECK if scope or not Path(target).exists() else there
    if scope:
        return f"{run}) was narrowed by {scope}", _RECORD
    older = f"{run}, {started_at}) was recorded by an older kdoctor, without the values that a rollback needs"
    return older, _RECORD
