"""Run ``helpers.kdoctor_job.job_trials`` in a child process, because the test process must not import TensorFlow."""

import atexit
import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, Any

from helpers.command import environ

ROOT = Path(__file__).parents[3]


def trials(kind: str, *names: str) -> dict[str, Any]:
    """The result of each trial. All trials of a test process run in one child: importing takes longer than a trial."""
    child, errors = _child()
    assert child.stdin
    assert child.stdout
    child.stdin.write(json.dumps([kind, *names]) + "\n")
    child.stdin.flush()
    answer = next((line for line in child.stdout if line.startswith("{")), None)
    if answer is None:
        _child.cache_clear()
        errors.seek(0)
        raise AssertionError(errors.read()[-3000:])
    found: dict[str, Any] = json.loads(answer)
    return found


@cache
def _child() -> tuple[subprocess.Popen[str], IO[str]]:
    paths = ":".join(str(ROOT / part) for part in ("doctor", "checks", "checklists", "tests"))
    variables = environ(PYTHONPATH=paths, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    command = [sys.executable, "-m", "helpers.kdoctor_job.job_trials"]
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the child
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True, env=variables)
    atexit.register(child.kill)
    return child, errors
