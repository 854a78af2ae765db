"""The scenario about Keras on torch, and its reproduction, with a real torch.

KDOCTOR_TORCH_PYTHON is an interpreter that has it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.command import captured, environ, kdoctor
from helpers.kdoctor_backends.torch import torch_python
from kdoctor.failures.known import load_reproductions

pytestmark = pytest.mark.torch
SCRIPTS = [name for name in load_reproductions() if name.startswith("torch-")]


@pytest.mark.parametrize("name", SCRIPTS)
def test_exit_status_of_the_reproduction_shows_the_defect(tmp_path: Path, name: str) -> None:
    script = tmp_path / "reproduction.py"
    script.write_text(load_reproductions()[name], encoding="utf-8")
    done = captured([torch_python(), script], env=environ(TMPDIR=str(tmp_path)), timeout=600)
    assert done.returncode == 3, done.stderr


def test_ddp_matches_one_device_and_fit_trains_alone() -> None:
    command = ("smoke", "torch-data-parallel", "--python", torch_python(), "--replicas", "2", "--format", "json")
    done = kdoctor(*command)
    results = {item["id"]: item for item in json.loads(done.stdout)["results"]}
    assert results["smoke.torch-data-parallel"]["status"] == "pass"
    assert results["smoke.torch-fit"]["status"] == "fail"
    subjects = {item["subject"] for item in results["smoke.torch-fit"]["findings"]}
    assert subjects == {"training fit", "training distribution"}
