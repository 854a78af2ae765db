"""Files that are not what an option expects: one short error, and never a wait for a pipe."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.command import KDOCTOR, captured, environ, kdoctor
from kdoctor.catalog.load import Catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.errors import UsageError
from kdoctor.lock.store import read_lock
from kdoctor.matrix.load import load_matrix
from kdoctor.snapshot.document import load
from kdoctor_recordings.importer import import_files

READERS: dict[str, Callable[[Path, Catalog], Any]] = {
    "checklist": lambda path, catalog: load_checklist(str(path), catalog),
    "lock": lambda path, _: read_lock(path),
    "snapshot": lambda path, catalog: load(path, catalog.fact_groups),
    "import": lambda path, _: import_files([path]),
    "matrix": lambda path, _: load_matrix(str(path), {}),
}


def missing(path: Path) -> None:
    path.unlink(missing_ok=True)


def random_bytes(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 8)


INPUTS: dict[str, Callable[[Path], object]] = {
    "missing": missing,
    "folder": Path.mkdir,
    "empty": Path.touch,
    "binary": random_bytes,
    "Latin-1": lambda path: path.write_bytes(b"name: caf\xe9\n"),
    "list": lambda path: path.write_text("- 1\n"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "other schema": lambda path: path.write_text('{"schema": "kdoctor/other/v9"}'),
    "duplicate keys": lambda path: path.write_text('{"schema": "x",\n "schema": "y"}'),
    "loop": lambda path: path.symlink_to(path),
    "pipe": os.mkfifo,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("broken", INPUTS)
def test_error_is_short_and_names_the_file(tmp_path: Path, catalog: Catalog, reader: str, broken: str) -> None:
    path = tmp_path / "given.yaml"
    INPUTS[broken](path)
    with pytest.raises(UsageError) as caught:
        READERS[reader](path, catalog)
    lines = str(caught.value).splitlines()
    assert any(str(path) in line for line in lines)
    assert len(lines) <= 6
    assert not str(caught.value).startswith("Traceback")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"facts": {"gpus": {"state": "x", "state": "y"}}}'])
def test_duplicate_key_of_snapshot_is_named(tmp_path: Path, catalog: Catalog, text: str) -> None:
    (tmp_path / "node.json").write_text(text)
    with pytest.raises(UsageError, match="duplicate key"):
        load(tmp_path / "node.json", catalog.fact_groups)


def test_process_substitution_is_read(tmp_path: Path) -> None:
    assert kdoctor("snapshot", "--no-smoke", "-c", "cpu-smoke", "-o", tmp_path / "node.json").returncode == 0
    command = f"{' '.join(KDOCTOR)} checklist record cpu-smoke --snapshot <(cat node.json)"
    done = captured(["bash", "-c", command], env=environ(), cwd=tmp_path, timeout=120)
    # Without trainings it cannot pass, but it was read and judged.
    assert done.returncode in (1, 3), done.stderr
    assert "nothing was recorded" in done.stderr
