from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import PYTHON, environment, h100_node, tensorflow
from helpers.facts.libraries import libraries, library, missing, no_libraries
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.cudnn_for_build import cudnn_for_build


def judged(*facts: FactGroup, **cudnn: Any) -> Result:
    return compute_check(cudnn_for_build, *h100_node(1), libraries(library("cudnn", **cudnn)), *facts)


@pytest.mark.parametrize(
    ("version", "release", "status"),
    [  # 2.18 and newer were built with 9.3, 2.16 and 2.17 with 8.9; cuda_dnn.cc: same major, equal or higher minor
        ("9.3.0", "2.21.0", Status.PASS),
        ("9.24.0", "2.21.0", Status.PASS),
        ("9.2.1", "2.21.0", Status.FAIL),
        ("9.1.0", "2.18.1", Status.FAIL),
        ("8.9.7", "2.21.0", Status.FAIL),
        ("10.0.0", "2.21.0", Status.FAIL),
        ("8.9.7", "2.17.1", Status.PASS),
        ("8.8.0", "2.17.1", Status.FAIL),
        ("9.3.0", "2.17.1", Status.FAIL),
        ("9.3.0", "2.99.0", Status.UNKNOWN),  # its build states only the major version
        ("8.9.7", "2.99.0", Status.FAIL),
        (None, "2.21.0", Status.UNKNOWN),
        ("new", "2.21.0", Status.UNKNOWN),
    ],
)
def test_loaded_cudnn_is_compared_with_the_build(version: str | None, release: str, status: Status) -> None:
    cuda = "12.3" if release == "2.17.1" else "12.5.1"
    assert judged(tensorflow(version=release, cuda_version=cuda), version=version).status is status


def test_build_with_an_unknown_cudnn_is_unknown() -> None:
    assert judged(tensorflow(version="2.99.0", cudnn_version=None)).status is Status.UNKNOWN


def test_cudnn_for_another_cuda_fails() -> None:
    finding = judged(built_with="13.0").findings[0].finding
    assert "CUDA 13.0" in finding.observed
    assert "CUDA 12.5.1" in finding.observed


def test_older_wheel_is_replaced_by_the_one_of_the_extra() -> None:
    finding = judged(version="9.1.0", package_version="9.1.0.70").findings[0].finding
    assert "9.3" in finding.expected
    assert finding.remedy.commands == (f"{PYTHON} -m pip install nvidia-cudnn-cu12==9.3.0.75",)


def test_older_cudnn_on_the_search_path_is_removed_from_it() -> None:
    old = {"version": "9.1.0", "package": None, "package_version": None, "found_by": "LD_LIBRARY_PATH"}
    path = environment(LD_LIBRARY_PATH="/opt/old")
    finding = judged(path, path="/opt/old/libcudnn.so.9", **old).findings[0].finding
    assert finding.remedy.commands == ("unset LD_LIBRARY_PATH", f"{PYTHON} -m pip install nvidia-cudnn-cu12==9.3.0.75")
    assert finding.rollback.commands == ("export LD_LIBRARY_PATH=/opt/old",)


def test_missing_cudnn_is_skipped() -> None:
    assert compute_check(cudnn_for_build, *h100_node(1), libraries(missing("cudnn"))).status is Status.SKIP
    assert compute_check(cudnn_for_build, *h100_node(1), no_libraries()).status is Status.SKIP
