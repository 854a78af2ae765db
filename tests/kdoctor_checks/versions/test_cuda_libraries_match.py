from __future__ import annotations

import re

from helpers.facts import PYTHON, h100_node, package, packages
from helpers.facts.libraries import libraries, library, without_wheels
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.cuda_libraries_match import cuda_libraries_match


def judged(*facts: FactGroup) -> Result:
    return compute_check(cuda_libraries_match, *h100_node(1), *facts)


def test_mixture_fails_with_the_cuda_release_of_each_library() -> None:
    old = [library(name, version="12.5.3", package_version="12.5.3.2") for name in ("cublas", "cublasLt")]
    result = judged(libraries(*old))
    (item,) = result.findings
    assert "CUDA 12.5: libcublas.so.12 12.5.3 (nvidia-cublas-cu12 12.5.3.2)" in item.finding.observed
    assert "CUDA 12.9: " in item.finding.observed
    assert "libcusolver.so.11 11.7.5" in item.finding.observed
    assert item.finding.remedy.commands[0].startswith(f"{PYTHON} -m pip uninstall -y nvidia-cublas-cu12 ")
    assert item.finding.remedy.commands[1] == f"{PYTHON} -m pip install --upgrade 'tensorflow[and-cuda]==2.21.0'"


def test_one_release_passes() -> None:
    result = judged()
    assert result.status is Status.PASS
    assert re.findall(r"[\d.]+", result.evidence[0].observed) == ["6", "12.9"]


def test_version_of_an_unknown_release_is_unknown() -> None:
    assert judged(libraries(library("cufft", version="12.0.0"))).status is Status.UNKNOWN
    assert judged(libraries(library("cufft", version=None))).status is Status.UNKNOWN


def test_wheels_that_share_a_folder_fail() -> None:
    both = packages(package("nvidia-nccl-cu12", "2.27.7"), package("nvidia-nccl-cu13", "2.28.3"))
    finding = judged(both).findings[0].finding
    assert finding.subject == "nvidia-nccl"
    assert finding.remedy.commands == (
        f"{PYTHON} -m pip uninstall -y nvidia-nccl-cu12 nvidia-nccl-cu13",
        f"{PYTHON} -m pip install nvidia-nccl-cu12==2.27.7",
    )
    assert finding.rollback.commands == (f"{PYTHON} -m pip install nvidia-nccl-cu12==2.27.7 nvidia-nccl-cu13==2.28.3",)


def test_wheel_for_the_cuda_of_tensorflow_is_kept() -> None:
    both = packages(package("nvidia-nccl-cu11", "2.21.5"), package("nvidia-nccl-cu12", "2.27.7"))
    assert judged(both).findings[0].finding.remedy.commands[-1].endswith("install nvidia-nccl-cu12==2.27.7")


def test_missing_libraries_are_skipped() -> None:
    assert judged(without_wheels()).status is Status.SKIP
