"""The database with concurrent runs, killed processes, full disks, other files, and older and newer versions."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.reports import cpu_report, gpu_report
from kdoctor.engine.report import Report
from kdoctor.errors import UsageError
from kdoctor.history import read
from kdoctor.history.location import KEEP, history_file, is_off, is_on_network, runs_to_keep
from kdoctor.history.record import keep
from kdoctor.history.store import STEPS, VERSION, HistoryError, opened

SOURCES = os.pathsep.join(path for path in sys.path if path.endswith(("doctor", "checks", "checklists", "tests")))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "state" / "history.sqlite"


def kept(place: Path, report: Report, **environ: str) -> None:
    assert keep(report, "", {"KDOCTOR_HISTORY": str(place), **environ}) is None


def run_python(program: str, place: Path, prefix: str = "") -> subprocess.Popen[str]:
    command = f'{prefix} exec "{sys.executable}" -c "$PROGRAM"'
    environ = {**os.environ, "PROGRAM": program, "PYTHONPATH": SOURCES, "KDOCTOR_HISTORY": str(place)}
    return subprocess.Popen(["/bin/sh", "-c", command], env=environ, stdout=subprocess.PIPE, text=True)


KEEP_ONE = """
import os
from helpers.reports import cpu_report
from kdoctor.history.record import keep
print(keep(cpu_report(), "", os.environ))
"""


def test_runs_are_stored_in_order_in_a_private_folder(place: Path) -> None:
    kept(place, cpu_report())
    kept(place, gpu_report())
    with opened(place, create=False) as connection:
        assert [(run.id, run.conclusion, run.checklist) for run in read.runs(connection, 0, None)] == [
            (1, "pass", "cpu-smoke"),
            (2, "fail", "multi-gpu-keras"),
        ]
    assert place.parent.stat().st_mode & 0o077 == 0


def test_concurrent_runs_are_all_stored(place: Path) -> None:
    running = [run_python(KEEP_ONE * 3, place) for _ in range(4)]
    assert [process.communicate(timeout=60)[0] for process in running] == ["None\n" * 3] * 4
    with opened(place, create=False) as connection:
        assert [run.id for run in read.runs(connection, 0, None)] == list(range(1, 13))


def test_new_database_that_another_run_reads_is_used_at_once(place: Path) -> None:
    kept(place, cpu_report())
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")  # as a new file has it
        other.execute("BEGIN")
        other.execute("SELECT * FROM runs").fetchall()  # the mode cannot be changed until this ends
        began = time.monotonic()
        with opened(place, create=True) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
            assert connection.execute("PRAGMA busy_timeout").fetchone() == (10_000,)
        assert time.monotonic() < began + 9, "it waited for the other run"


def test_killed_writer_leaves_the_database_intact(place: Path) -> None:
    kept(place, cpu_report())
    program = (
        "import os, signal, pathlib\nfrom kdoctor.history.store import opened, writing\n"
        "with opened(pathlib.Path(os.environ['KDOCTOR_HISTORY']), create=True) as connection, writing(connection):\n"
        "    connection.execute('DELETE FROM runs')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    process = run_python(program, place)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    kept(place, cpu_report())
    with opened(place, create=False) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert len(read.runs(connection, 0, None)) == 2


def test_full_disk_is_a_note_and_old_runs_stay(place: Path) -> None:
    """The limit on a file's size simulates a full disk."""
    for _ in range(3):
        kept(place, cpu_report())
    blocks = place.stat().st_size // 512
    process = run_python(KEEP_ONE * 30, place, prefix=f"ulimit -f {blocks};")
    notes = process.communicate(timeout=60)[0].splitlines()
    assert process.returncode == 0
    assert len(notes) == 30
    assert str(place) in notes[-1]
    with opened(place, create=False) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert len(read.runs(connection, 0, None)) == 3 + notes.count("None")


def test_unusable_folder_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = tmp_path / "file" / "history.sqlite"
    note = keep(cpu_report(), "", {"KDOCTOR_HISTORY": str(file)})
    assert note
    assert str(file) in note


def test_file_that_is_not_a_database_is_left_unchanged(place: Path) -> None:
    place.parent.mkdir()
    place.write_text("a diary, not a database; long enough that SQLite reads its head" * 20)
    before = place.read_bytes()
    note = keep(cpu_report(), "", {"KDOCTOR_HISTORY": str(place)})
    assert note
    assert "file is not a database" in note
    assert place.read_bytes() == before
    with pytest.raises(HistoryError, match="file is not a database"), opened(place, create=False):
        pass


def test_newer_version_is_refused_and_left_unchanged(place: Path) -> None:
    kept(place, cpu_report())
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("PRAGMA user_version = 99")
    note = keep(cpu_report(), "", {"KDOCTOR_HISTORY": str(place)})
    assert note
    assert f"version 99; this kdoctor reads {VERSION}" in note
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM runs").fetchone() == (1,)


@pytest.mark.parametrize("version", range(1, VERSION))
def test_upgrade_keeps_old_data(place: Path, version: int) -> None:
    place.parent.mkdir()
    with closing(sqlite3.connect(place)) as connection:
        for step in STEPS[:version]:
            connection.executescript(step)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(
            "INSERT INTO runs (started_at, duration_s, host, checklist, checklist_version, target, scope, kdoctor, "
            "conclusion, exit_code, reason, passed, failed, skipped, unknown) VALUES "
            "('2029-01-01T00:00:00+00:00', 3, 'node7', 'old', 1, '/bin/python', '', '0.1.0', 'pass', 0, 'ok', 1, 0, "
            "0, 0)"
        )
        connection.commit()
    kept(place, cpu_report())
    with opened(place, create=False) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert [run.checklist for run in read.runs(connection, 0, None)] == ["old", "cpu-smoke"]
        assert connection.execute("SELECT COUNT(*) FROM measures").fetchone() == (2,)


def test_old_runs_are_deleted_with_their_data(place: Path) -> None:
    for _ in range(7):
        kept(place, cpu_report(), KDOCTOR_HISTORY_KEEP="3")
    with opened(place, create=False) as connection:
        assert [run.id for run in read.runs(connection, 0, None)] == [5, 6, 7]
        assert connection.execute("SELECT MIN(run) FROM reports").fetchone() == (5,)
        assert connection.execute("SELECT MIN(run) FROM measures").fetchone() == (5,)


def test_reading_creates_no_file(place: Path) -> None:
    with opened(place, create=False) as connection:
        assert read.runs(connection, 0, None) == []
    assert not place.parent.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="paths of Linux")
@cases(
    ({"KDOCTOR_HISTORY": "/srv/h.sqlite", "XDG_STATE_HOME": "/x"}, "/srv/h.sqlite"),
    ({"XDG_STATE_HOME": "/x"}, "/x/kdoctor/history.sqlite"),
    ({"XDG_STATE_HOME": "relative"}, "~/.local/state/kdoctor/history.sqlite"),
    ({}, "~/.local/state/kdoctor/history.sqlite"),
)
def test_history_file_follows_environment(environ: dict[str, str], file: str) -> None:
    assert history_file(environ) == Path(file).expanduser()


def test_environment_controls_history() -> None:
    assert [is_off({"KDOCTOR_NO_HISTORY": value}) for value in ("1", "yes", "0", "")] == [True, True, False, False]
    assert [runs_to_keep({"KDOCTOR_HISTORY_KEEP": value}) for value in ("5", "")] == [5, KEEP]
    for value in ("0", "x", "-5", "1e3"):
        with pytest.raises(UsageError, match=f"KDOCTOR_HISTORY_KEEP={value}"):
            runs_to_keep({"KDOCTOR_HISTORY_KEEP": value})


def test_network_file_system_is_detected(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/sda1 / ext4 rw 0 0\nserver:/home {tmp_path} nfs4 rw 0 0\ntmpfs {tmp_path}/l tmpfs rw 0 0\n"
    )
    assert is_on_network(tmp_path / "kdoctor", mounts)
    assert not is_on_network(tmp_path / "l" / "kdoctor", mounts)
    assert not is_on_network(Path("/srv"), mounts)
    assert not is_on_network(Path("/srv"), tmp_path / "nosuch")
