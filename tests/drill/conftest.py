from __future__ import annotations

import shutil
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.planted import pinned, pip

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with pip only."""
    folder = tmp_path_factory.mktemp("bare") / "job"
    venv.create(folder, with_pip=True, symlinks=True)
    done = pip(folder / "bin/python", "download", "--no-deps", "--dest", str(folder.parent), pinned("six"))
    if done.returncode:
        pytest.skip(f"pip cannot download packages: {done.stderr.strip().splitlines()[-1]}")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def healthy(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with TensorFlow and Keras of constraints.txt, installed by pip. Copy it; do not change it."""
    folder = tmp_path_factory.mktemp("healthy") / "job"
    copy(bare, folder)
    wanted = CONSTRAINTS.with_name("constraints.txt").read_text(encoding="utf-8").splitlines()
    limits = folder / "constraints.txt"  # pip may not be limited: it installs itself
    limits.write_text("\n".join(line for line in wanted if not line.startswith(("pip==", "setuptools=="))))
    done = pip(folder / "bin/python", "install", "--constraint", str(limits), "tensorflow")
    assert done.returncode == 0, done.stderr
    yield folder
    shutil.rmtree(folder)


def copy(source: Path, target: Path) -> Path:
    """A copy with hard links: seconds for gigabytes. pip replaces files, and never writes into them."""
    subprocess.run(["cp", "-al", source, target], check=True)
    return target
