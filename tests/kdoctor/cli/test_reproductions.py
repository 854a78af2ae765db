"""The scripts of ``kdoctor explain --reproduce``, run as a user runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.command import environ, kdoctor
from kdoctor.failures.known import load_reproductions

MOST_LINES = 40
DEFECTIVE = {"0": 3, "1": 0}
"""TF_USE_LEGACY_KERAS to the exit status: Keras 3 has the defects, tf_keras does not."""


@pytest.mark.parametrize("name", load_reproductions())
def test_script_is_printed_and_short(name: str) -> None:
    done = kdoctor("explain", "--reproduce", name)
    assert done.returncode == 0
    assert done.stdout == load_reproductions()[name]
    assert len(done.stdout.splitlines()) <= MOST_LINES


def test_unknown_names_and_no_name_are_usage_errors() -> None:
    unknown = kdoctor("explain", "--reproduce", "cliping")
    assert (unknown.returncode, "'clipping'" in unknown.stderr) == (2, True)
    assert kdoctor("explain", "--reproduce", "clipping", "smoke.clipping").returncode == 2
    assert kdoctor("explain").returncode == 2


@pytest.mark.tensorflow
@pytest.mark.parametrize("legacy", DEFECTIVE)
@pytest.mark.parametrize("name", load_reproductions())
def test_exit_status_shows_the_defect(tmp_path: Path, name: str, legacy: str) -> None:
    script = tmp_path / "reproduction.py"
    script.write_text(load_reproductions()[name], encoding="utf-8")
    env = environ(TF_USE_LEGACY_KERAS=legacy)
    done = subprocess.run([sys.executable, str(script)], check=False, capture_output=True, text=True, env=env)
    assert done.returncode == DEFECTIVE[legacy], done.stderr
    assert done.stdout
