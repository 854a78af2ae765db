from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import PYTHON, environment, gpu, gpus, h100_node, tensorflow
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup
from kdoctor.matrix.load import shipped_matrix
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.gpu_code import gpu_code

OLD = ("sm_50", "sm_60", "sm_70", "sm_80", "compute_90")
"""The build_info of 2.16.2."""


def judged(*facts: FactGroup, **build: Any) -> Result:
    return compute_check(gpu_code, *h100_node(1), tensorflow(**build), *facts)


@pytest.mark.parametrize(
    ("version", "capability", "status"),
    [  # cubins of 2.21: 6.0, 7.0, 8.0, 8.9, 9.0, and PTX of 9.0; measured in the wheel
        ("2.21.0", "5.2", Status.FAIL),
        ("2.21.0", "6.1", Status.PASS),
        ("2.21.0", "7.5", Status.PASS),
        ("2.21.0", "8.6", Status.PASS),
        ("2.21.0", "9.0", Status.PASS),
        ("2.21.0", "10.0", Status.PASS),
        ("2.21.0", "12.0", Status.PASS),
        ("2.20.0", "10.0", Status.FAIL),
        ("2.20.0", "12.0", Status.FAIL),
        ("2.20.0", "9.0", Status.PASS),
        ("2.21.0", "nine", Status.UNKNOWN),
        ("2.21.0", None, Status.UNKNOWN),
    ],
)
def test_code_in_the_build_is_compared_with_the_gpu(version: str, capability: str | None, status: Status) -> None:
    assert judged(gpus(1, gpu(0, compute_capability=capability)), version=version).status is status


def test_build_without_architectures_is_looked_up_in_the_matrix() -> None:
    old = gpus(1, gpu(0, compute_capability="5.2"))
    assert judged(old, version="2.16.2", compute_capabilities=()).status is Status.PASS
    assert judged(old, version="2.17.1", compute_capabilities=()).status is Status.FAIL
    assert judged(old, version="2.99.0", compute_capabilities=()).status is Status.UNKNOWN
    assert judged(old, version="2.99.0", compute_capabilities=OLD).status is Status.PASS


def test_finding_says_where_the_code_was_read() -> None:
    old = gpus(1, gpu(0, compute_capability="5.2"))
    release = shipped_matrix().release("2.17.1")
    assert release is not None
    as_in_the_matrix = tuple(f"sm_{number}" for number in release.cubins)
    for listed, source in (((), "the version matrix"), (as_in_the_matrix, "the build"), (("sm_60",), "the build")):
        (found,) = judged(old, version="2.17.1", compute_capabilities=listed).findings
        assert f"from {source}" in found.finding.observed


def test_finding_installs_a_release_that_runs_on_the_gpu() -> None:
    finding = judged(gpus(1, gpu(0, compute_capability="5.2"))).findings[0].finding
    assert finding.subject.startswith("GPU 0")
    assert "5.2" in finding.observed
    assert "6.0, 7.0, 8.0, 8.9; PTX for 9.0" in finding.observed
    assert finding.remedy.commands[0] == f"{PYTHON} -m pip install 'tensorflow[and-cuda]==2.16.2'"
    assert finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow==2.21.0",)


def test_blackwell_before_2_21_fails_with_the_known_symptom() -> None:
    result = judged(gpus(1, gpu(0, name="NVIDIA B200", compute_capability="10.0")), version="2.19.1")
    finding = result.findings[0].finding
    assert "CUDA_ERROR_INVALID_PTX" in finding.observed
    assert finding.remedy.commands[0] == f"{PYTHON} -m pip install 'tensorflow[and-cuda]==2.21.0'"


def test_hidden_gpu_is_not_judged() -> None:
    both = gpus(2, gpu(0), gpu(1, compute_capability="5.2"))
    assert judged(both).status is Status.FAIL
    assert judged(both, environment(CUDA_VISIBLE_DEVICES="0")).status is Status.PASS


def test_driver_without_gpus_is_unknown() -> None:
    assert judged(gpus(0, state="ready", devices=(), count=0)).status is Status.UNKNOWN
