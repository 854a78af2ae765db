import os
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
    """An environment with TensorFlow and Keras of constraints.txt, installed by pip. Copy it; do not change it.

    ``DRILL_FOLDER`` names a folder that keeps it for the next run.
    """
    kept = os.environ.get("DRILL_FOLDER")
    folder = (Path(kept).absolute() if kept else tmp_path_factory.mktemp("healthy")) / "job"
    if not (folder / "finished").exists():
        _install(bare, folder)
    yield folder
    if not kept:
        shutil.rmtree(folder)  # gigabytes


def _install(bare: Path, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    copy(bare, folder)
    limits = folder / "constraints.txt"
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    limits.write_text("\n".join(line for line in lines if not line.startswith(("pip==", "setuptools=="))))
    done = pip(folder / "bin/python", "install", "--constraint", str(limits), "tensorflow")
    assert done.returncode == 0, done.stderr
    (folder / "finished").touch()


def copy(source: Path, target: Path) -> Path:
    """A copy with hard links: seconds for gigabytes. pip replaces files, and never writes into them."""
    subprocess.run(["cp", "-al", source, target], check=True)
    return target
