from __future__ import annotations

import pytest

from helpers.facts import PYTHON, gpu, gpus, h100_node, tensorflow
from helpers.facts.libraries import libraries, library, missing, no_libraries
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.cudnn_for_gpus import cudnn_for_gpus


def judged(version: str | None, capability: str | None, *facts: FactGroup, driver: str = "580.105.08") -> Result:
    found = gpus(1, gpu(0, compute_capability=capability), driver_version=driver)
    return compute_check(cudnn_for_gpus, *h100_node(1), found, libraries(library("cudnn", version=version)), *facts)


@pytest.mark.parametrize(
    ("version", "capability", "status"),
    [  # the wheels' fatbins: 9.10.2 has 5.0 to 9.0, 10.0, 12.0; from 9.11 on nothing before 7.5; 9.3 no Blackwell
        ("9.3.0", "7.0", Status.PASS),
        ("9.3.0", "10.0", Status.FAIL),
        ("9.10.2", "6.0", Status.PASS),
        ("9.10.2", "12.0", Status.PASS),
        ("9.11.0", "7.0", Status.FAIL),
        ("9.11.0", "7.5", Status.PASS),
        ("9.24.0", "6.1", Status.FAIL),
        ("9.24.0", "9.0", Status.PASS),
        ("9.7.0", "9.0", Status.UNKNOWN),  # not measured
        (None, "9.0", Status.UNKNOWN),
        ("9.24.0", None, Status.UNKNOWN),
        ("9.24.0", "nine", Status.UNKNOWN),
    ],
)
def test_code_in_cudnn_is_compared_with_the_gpu(version: str | None, capability: str | None, status: Status) -> None:
    assert judged(version, capability).status is status


def test_driver_without_gpus_is_unknown_with_its_state() -> None:
    found = gpus(0, state="no-library")
    result = compute_check(cudnn_for_gpus, *h100_node(1), found, libraries(library("cudnn", version="9.10.2")))
    assert result.status is Status.UNKNOWN
    assert [(item.subject, item.reason) for item in result.unjudged] == [
        ("GPUs", "the driver lists no GPUs (no-library)")
    ]


def test_old_gpus_get_the_last_cudnn_with_their_code() -> None:
    finding = judged("9.24.0", "7.0").findings[0].finding
    assert "Install a cuDNN" in finding.remedy.summary
    assert finding.remedy.commands == (f"{PYTHON} -m pip install nvidia-cudnn-cu12==9.10.2.21",)


def test_blackwell_gets_a_newer_cudnn() -> None:
    finding = judged("9.3.0", "10.0").findings[0].finding
    assert finding.remedy.commands == (f"{PYTHON} -m pip install 'nvidia-cudnn-cu12>=9.11'",)


def test_driver_older_than_the_support_matrix_is_unknown() -> None:
    assert judged("9.24.0", "10.0", driver="565.57.01").status is Status.UNKNOWN
    assert judged("9.24.0", "10.0", driver="N/A").status is Status.UNKNOWN


def test_missing_cudnn_is_skipped() -> None:
    assert compute_check(cudnn_for_gpus, *h100_node(1), libraries(missing("cudnn"))).status is Status.SKIP
    assert compute_check(cudnn_for_gpus, *h100_node(1), no_libraries()).status is Status.SKIP


def test_build_with_an_unknown_cuda_is_unknown() -> None:
    assert judged("9.24.0", "9.0", tensorflow(version="2.99.0", cuda_version=None)).status is Status.UNKNOWN
