import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    kept = os.environ.get("MATRIX_FOLDER")
    yield Path(kept).absolute() if kept else tmp_path
    if not kept:
        shutil.rmtree(tmp_path)  # gigabytes
