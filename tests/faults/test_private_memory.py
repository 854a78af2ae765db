"""The tests of faults see what their runs leave in /dev/shm, and nothing else."""

import subprocess
from pathlib import Path

import pytest

from helpers.faults.private_memory import SHARED_MEMORY, private_memory


def test_only_files_of_the_runs_are_seen(tmp_path: Path) -> None:
    name = f"kdoctor-test-{tmp_path.name}"
    with private_memory(tmp_path) as memory:
        if memory is None:
            pytest.skip("needs a private mount namespace")
        assert memory.files() == []
        run = f"touch {SHARED_MEMORY}/{name}; pwd; touch here"
        done = subprocess.run(
            ["sh", "-c", run], cwd=tmp_path, preexec_fn=memory.enter, capture_output=True, text=True, check=True
        )
        assert memory.files() == [name]
    assert done.stdout.strip() == str(tmp_path)
    assert (tmp_path / "here").exists()
    assert not (SHARED_MEMORY / name).exists()
