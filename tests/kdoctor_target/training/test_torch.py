"""The scenario about Keras on torch with a real torch. KDOCTOR_TORCH_PYTHON is an interpreter that has it."""

from __future__ import annotations

import json
import os

import pytest

from helpers.command import kdoctor

pytestmark = pytest.mark.torch


def test_ddp_matches_one_device_and_fit_trains_alone() -> None:
    python = os.environ.get("KDOCTOR_TORCH_PYTHON")
    if not python:
        pytest.skip("KDOCTOR_TORCH_PYTHON is not set: make test-torch sets it")
    done = kdoctor("smoke", "torch-data-parallel", "--python", python, "--replicas", "2", "--format", "json")
    results = {item["id"]: item for item in json.loads(done.stdout)["results"]}
    assert results["smoke.torch-data-parallel"]["status"] == "pass"
    assert results["smoke.torch-fit"]["status"] == "fail"
    subjects = {item["subject"] for item in results["smoke.torch-fit"]["findings"]}
    assert subjects == {"training fit", "training distribution"}
