"""Every printed installation command resolves with pip, for each Python that it is printed for.

``make test-matrix`` runs these tests. pip reads the metadata of all wheels; nothing is installed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.real_environments import interpreter
from kdoctor.matrix.compatibility import compatible
from kdoctor.matrix.gpus import find_gpu
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.values import python_minors
from kdoctor.matrix.verdict import Machine
from kdoctor.matrix.wheels.download import pip_command

pytestmark = [pytest.mark.matrix, pytest.mark.skipif(sys.platform != "linux", reason="the wheels are for Linux")]

MATRIX = load_matrix(environ={})
MACHINES = (("580.95.05", "A100"), ("580.95.05", "V100"), ("580.95.05", "B200"), ("535.161.08", "H100"))
"""Drivers and GPUs that lead to different pins."""

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
OLDER = ("manylinux2010_x86_64", "manylinux_2_12_x86_64", "manylinux1_x86_64", "manylinux_2_5_x86_64")


def commands() -> list[tuple[str, tuple[str, ...]]]:
    """Each Python and the requirements that are printed for it, without what is printed with a warning about pip."""
    found: dict[tuple[str, tuple[str, ...]], None] = {}
    for python in python_minors(">=3.7"):
        for driver, gpu in MACHINES:
            machine = Machine(driver=driver, gpus=(find_gpu(MATRIX, gpu),), python=python)
            for verdict in compatible(MATRIX, machine):
                warned = any(reason.failure == "h5py_pin_python314" for reason in verdict.cautions)
                if verdict.outcome == "runs" and not warned:
                    found[python, verdict.requirements] = None
    return list(found)


@pytest.mark.parametrize(("python", "requirements"), commands(), ids=str)
def test_command_resolves(python: str, requirements: tuple[str, ...], tmp_path: Path) -> None:
    platforms = [option for name in (*PLATFORMS, *OLDER) for option in ("--platform", name)]
    options = ["install", "--dry-run", "--quiet", "--ignore-installed"]
    other = ["--only-binary=:all:", "--target", str(tmp_path), "--python-version", python, *platforms]
    found = interpreter(python)  # which may also build what has no wheel, as a user's pip does
    argv = [str(found), "-m", "pip", *options] if found else [*pip_command(), *options, *other]
    argv += requirements
    end = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert end.returncode == 0, end.stderr[-2000:]
