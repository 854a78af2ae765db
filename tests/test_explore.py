"""``make explore`` finds by invariant what no record names, and goes on where it stopped."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
UNSYNCHRONIZED = "keras.layers.BatchNormalization()"


def explored(results: Path, *options: str) -> tuple[list[dict[str, Any]], str]:
    command = [sys.executable, "-m", "benchmarks.explore", "--results", str(results), *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environment)
    return [json.loads(line) for line in results.read_text().splitlines()], done.stdout


@pytest.mark.smoke_full
def test_symbols_that_break_have_a_script_and_are_examined_once(tmp_path: Path) -> None:
    results = tmp_path / "explored.jsonl"
    found, said = explored(results, "--only", "BatchNormalization()")
    assert [(entry["parts"], entry["verdict"]) for entry in found] == [([], "clean"), ([UNSYNCHRONIZED], "breaks")]
    assert len(found[1]["script"].splitlines()) <= 40
    assert "1 of 1 with a verdict" in said
    assert explored(results, "--only", "BatchNormalization()")[0] == found


@pytest.mark.smoke_full
def test_use_of_a_method_is_judged_by_the_first_invariant_that_it_breaks(tmp_path: Path) -> None:
    found, _ = explored(tmp_path / "explored.jsonl", "--only", "data: finite generator")
    assert found[1]["reason"].startswith("examples: ")
    assert len(found[1]["script"].splitlines()) <= 50
