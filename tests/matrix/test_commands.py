"""Every printed installation command resolves with pip, for each Python that it is printed for.

``make test-matrix`` runs these tests. pip reads the metadata of all wheels; nothing is installed. ``MATRIX_PYTHONS``
adds interpreters to those on PATH. pip's ``--python-version`` is not used: it judges some wheels by its own Python.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from helpers.real_environments import interpreter
from kdoctor.matrix.compatibility import compatible
from kdoctor.matrix.gpus import find_gpu
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.values import python_minors
from kdoctor.matrix.verdict import Machine

pytestmark = [pytest.mark.matrix, pytest.mark.skipif(sys.platform != "linux", reason="the wheels are for Linux")]

MATRIX = load_matrix(environ={})
MACHINES = (("580.95.05", "A100"), ("580.95.05", "V100"), ("580.95.05", "B200"), ("535.161.08", "H100"))
"""Drivers and GPUs that lead to different pins."""

FOR_JAX = "3.12"
"""All rows of JAX have wheels for it."""


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
    for driver, gpu in MACHINES:
        machine = Machine(driver=driver, gpus=(find_gpu(MATRIX, gpu),), python=FOR_JAX)
        found |= {
            (FOR_JAX, verdict.requirements): None
            for verdict in compatible(MATRIX.of("jax"), machine)
            if verdict.outcome == "runs"
        }
    return list(found)


@pytest.mark.parametrize(("python", "requirements"), commands(), ids=str)
def test_command_resolves(python: str, requirements: tuple[str, ...]) -> None:
    found = interpreter(python)
    if found is None:
        pytest.skip(f"Python {python} was not found; MATRIX_PYTHONS can name an interpreter")
    argv = [found, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", *requirements]
    end = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert end.returncode == 0, end.stderr[-2000:]
