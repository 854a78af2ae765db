import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdoctor.probes.process.run_folder import remove_abandoned, run_folder

KILLED = """
import os, signal
from kdoctor.probes.process.run_folder import run_folder
with run_folder("smoke") as folder:
    open(os.path.join(folder, "left"), "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_folder_is_removed_at_the_end(temporary: Path) -> None:
    with run_folder("smoke") as folder:
        assert Path(folder).parent == temporary
        Path(folder, "file").touch()
    assert list(temporary.iterdir()) == []


def test_folder_of_a_killed_run_is_removed_by_the_next_one(temporary: Path) -> None:
    variables = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", KILLED], check=False, env=variables)
    assert len(list(temporary.iterdir())) == 1
    remove_abandoned()
    assert list(temporary.iterdir()) == []


def test_folders_in_use_and_of_others_stay(temporary: Path) -> None:
    other = temporary / "kdoctor-other"
    other.mkdir()
    (temporary / "kdoctor-smoke-link").symlink_to(other)
    with run_folder("smoke") as folder:
        remove_abandoned()
        assert Path(folder).is_dir()
    assert {item.name for item in temporary.iterdir()} == {"kdoctor-other", "kdoctor-smoke-link"}
