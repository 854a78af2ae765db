"""Run ``helpers.kdoctor_job.job_trials`` in a child process, because the test process must not import TensorFlow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from helpers.command import environ

ROOT = Path(__file__).parents[3]


def trials(kind: str, *names: str) -> dict[str, Any]:
    """The result of each trial."""
    paths = ":".join(str(ROOT / part) for part in ("doctor", "checks", "checklists", "tests"))
    variables = environ(PYTHONPATH=paths, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    command = [sys.executable, "-m", "helpers.kdoctor_job.job_trials", kind, *names]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=variables, timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
