"""The command line on described machines: the real NVML binding, and trees of /sys, /proc and /dev."""

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
"""The checks of a described machine. Checks of libraries would judge the machine that the tests run on."""


def report_on(machine: str, folder: Path, *arguments: str, **variables: str) -> dict[str, Any]:
    described = {**machines.environment(machine, folder), **variables}
    done = kdoctor("check", *arguments, "--format", "json", variables=described)
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


def test_healthy_machine_passes(tmp_path: Path) -> None:
    """The checks of the other machines are in tests/kdoctor_checks/test_machines.py."""
    report = report_on("h100-nvswitch", tmp_path, "--no-smoke", *MACHINE)
    assert failed(report, "error") == {}
    assert report["verdict"] == "pass"


SEEN = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0,1,3"}


def test_job_on_the_other_gpus_passes_while_one_is_lost(tmp_path: Path) -> None:
    options = ("--no-smoke", *MACHINE, "--select", "environment", "--gpus", "3")
    report = report_on("one-gpu-lost", tmp_path, *options, **SEEN)
    assert failed(report, "error") == {}
    assert report["verdict"] == "pass"
    hidden = [item for result in report["results"] for item in result["findings"] if item["hidden"]]
    assert {item["subject"] for item in hidden} == {"GPU 2 (0000:81:00.0)"}


def test_more_visible_gpus_than_asked_for_fail(tmp_path: Path) -> None:
    report = report_on("a100-nvlink", tmp_path, "--no-smoke", *MACHINE, "--gpus", "3")
    assert failed(report, "error") == {"gpu.count-expected": ["GPUs"]}


@pytest.mark.tensorflow
def test_gpus_invisible_to_tensorflow_fail(tmp_path: Path) -> None:
    """The driver lists four GPUs and TensorFlow finds none, so that it would train on the CPU without an error."""
    report = report_on("a100-nvlink", tmp_path, "--select", "gpu.replicas-match")
    result = next(result for result in report["results"] if result["id"] == "gpu.replicas-match")
    assert result["status"] == "fail"
    observed = result["findings"][0]["observed"]
    assert ("4" in observed, "0" in observed) == (True, True)
    assert report["exit_code"] == 1
