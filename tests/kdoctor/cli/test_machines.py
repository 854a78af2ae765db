"""The real command line on described machines: the real NVML binding, and trees of /sys, /proc and /dev."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers import machines
from helpers.command import kdoctor

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="NVML and sysfs are Linux'")]


MACHINE = tuple(
    word
    for check in ("driver.loaded", "driver.library-matches-module", "driver.device-nodes", "gpu", "topology", "host")
    for word in ("--select", check)
)
"""The checks of a described machine; those of CUDA's libraries would judge the machine that the tests run on."""


def report_on(machine: str, folder: Path, *arguments: str) -> dict[str, Any]:
    done = kdoctor("check", *arguments, "--format", "json", variables=machines.environment(machine, folder))
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == report["exit_code"], done.stderr
    return report


def failed(report: dict[str, Any], severity: str) -> dict[str, list[str]]:
    """Subjects of the findings by check."""
    return {
        result["id"]: [finding["subject"] for finding in result["findings"]]
        for result in report["results"]
        if result["status"] == "fail" and result["severity"] == severity
    }


@pytest.mark.parametrize("machine", machines.HEALTHY)
def test_a_healthy_machine_hears_no_error_and_nothing_that_matters_is_unknown(machine: str, tmp_path: Path) -> None:
    report = report_on(machine, tmp_path, "--no-smoke", *MACHINE)
    assert failed(report, "error") == {}
    assert report["verdict"] == "pass"


@pytest.mark.parametrize(
    ("machine", "check", "subject"),
    [
        ("one-gpu-lost", "gpu.responding", "GPU 2"),
        ("driver-not-loaded", "driver.loaded", "NVIDIA driver"),
        ("library-mismatch", "driver.library-matches-module", "NVIDIA driver"),
        ("permission-denied", "driver.loaded", "NVIDIA driver"),
    ],
)
def test_a_sick_machine_is_told_once_with_its_subject(machine: str, check: str, subject: str, tmp_path: Path) -> None:
    report = report_on(machine, tmp_path, "--no-smoke", *MACHINE)
    assert failed(report, "error") == {check: [subject]}
    assert report["exit_code"] == 1


def test_a_driver_that_supports_no_call_is_never_a_pass(tmp_path: Path) -> None:
    report = report_on("nothing-supported", tmp_path, "--no-smoke", *MACHINE)
    assert report["verdict"] == "unknown"
    assert report["exit_code"] == 3


@pytest.mark.tensorflow
def test_gpus_that_tensorflow_does_not_see_are_no_silent_training_on_the_cpu(tmp_path: Path) -> None:
    """The driver lists four GPUs, and TensorFlow finds none: it would train on one CPU replica without a word."""
    report = report_on("a100-nvlink", tmp_path, "--select", "gpu.replicas-match")
    result = next(result for result in report["results"] if result["id"] == "gpu.replicas-match")
    assert result["status"] == "fail"
    assert "4 visible to CUDA, 0 in TensorFlow" in result["findings"][0]["observed"]
    assert report["exit_code"] == 1
