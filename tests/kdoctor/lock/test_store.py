import errno
import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from helpers.catalogs import small_catalog
from helpers.checklist_texts import ONE_CHECK
from helpers.locks import lock
from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.resolve import Checklist
from kdoctor.lock.document import LockError, text_of
from kdoctor.lock.record import expectations_of
from kdoctor.lock.store import load_lock, lock_path, read_lock, write_lock
from kdoctor.output import OutputError


def checklist(folder: Path, text: str = ONE_CHECK, name: str = "job.yaml") -> Checklist:
    path = folder / name
    path.write_text(text)
    return load_checklist(str(path), small_catalog())


def test_lock_is_next_to_its_checklist(tmp_path: Path) -> None:
    assert lock_path(checklist(tmp_path)) == tmp_path / "job.lock.yaml"
    assert lock_path(checklist(tmp_path, name="other.yml")) == tmp_path / "other.lock.yaml"


def test_expectations_ignore_order_and_comments(tmp_path: Path) -> None:
    one = expectations_of(checklist(tmp_path))
    turned = (
        ONE_CHECK.replace("baseline: a test, edge-case: a test", "edge-case: a test, baseline: a test") + "# seen\n"
    )
    assert expectations_of(checklist(tmp_path, turned)) == one
    assert expectations_of(checklist(tmp_path, ONE_CHECK.replace("version: 3", "version: 4"))) != one


def test_missing_lock_is_an_error_only_if_named(tmp_path: Path) -> None:
    chosen = checklist(tmp_path)
    assert load_lock(chosen) == (tmp_path / "job.lock.yaml", None)
    with pytest.raises(LockError, match="no such file"):
        load_lock(chosen, tmp_path / "none.yaml")


def test_lock_of_another_checklist_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.lock.yaml"
    write_lock(path, lock(checklist="other"), None)
    for named in (None, path):
        with pytest.raises(LockError, match=r"'other'.*'job'"):
            load_lock(checklist(tmp_path), named)


def test_dangling_link_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "job.lock.yaml").symlink_to("nowhere")
    with pytest.raises(LockError, match="no such file"):
        load_lock(checklist(tmp_path))


def test_lock_is_replaced_atomically(tmp_path: Path) -> None:
    path = tmp_path / "job.lock.yaml"
    write_lock(path, lock(), None)
    before = path.read_bytes()
    write_lock(path, lock(version=4), before)
    assert read_lock(path).version == 4
    assert [item.name for item in tmp_path.iterdir()] == ["job.lock.yaml"]


def test_only_the_first_of_several_recorders_writes(tmp_path: Path) -> None:
    path = tmp_path / "job.lock.yaml"

    def record(version: int) -> str:
        try:
            write_lock(path, lock(version=version), None)
        except OutputError as error:
            return "refused" if "another run" in error.message else error.message
        return "written"

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(record, range(1, 9)))
    assert sorted(outcomes) == ["refused"] * 7 + ["written"]
    assert path.read_text() == text_of(lock(version=outcomes.index("written") + 1))


def test_lock_that_vanished_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="another run"):
        write_lock(tmp_path / "job.lock.yaml", lock(), b"the old lock")


FULL_DISK = """\
import resource, signal, sys
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
sys.path[:0] = sys.argv[2:]
from helpers.locks import lock
from kdoctor.lock.store import write_lock
from kdoctor.output import OutputError
path = Path(sys.argv[1])
try:
    write_lock(path, lock(version=4), path.read_bytes())
except OutputError as error:
    print(error.message)
"""


def test_full_disk_leaves_the_old_lock(tmp_path: Path) -> None:
    path = tmp_path / "job.lock.yaml"
    write_lock(path, lock(), None)
    before = path.read_bytes()
    command = [sys.executable, "-B", "-c", FULL_DISK, str(path), *sys.path]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stdout == f"cannot write {path}: {os.strerror(errno.EFBIG)}\n", done.stderr
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["job.lock.yaml"]


def test_lock_of_a_shipped_checklist_is_in_the_working_folder() -> None:
    shipped = load_checklist("cpu-smoke", load_catalog())
    assert lock_path(shipped) == Path("cpu-smoke.lock.yaml")


def test_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=os.strerror(errno.ENOENT)):
        write_lock(tmp_path / "none" / "job.lock.yaml", lock(), None)


def test_recorder_waits_for_another_one(tmp_path: Path) -> None:
    path = tmp_path / "job.lock.yaml"
    holder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(write_lock, path, lock(version=4), None)
        written_at_once, _ = wait([second], timeout=0.5)
        path.write_text(text_of(lock()))
        os.close(holder)
        assert isinstance(second.exception(), OutputError)
    assert not written_at_once


def test_lock_is_written_where_files_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    write_lock(tmp_path / "job.lock.yaml", lock(), None)
    assert read_lock(tmp_path / "job.lock.yaml") == lock()
