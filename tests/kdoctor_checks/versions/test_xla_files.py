from __future__ import annotations

from typing import Literal

import pytest

from helpers.facts import PYTHON, h100_node, tensorflow
from helpers.facts.libraries import libraries, no_libraries
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, XlaFile
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.xla_files import xla_files


def judged(*facts: FactGroup) -> Result:
    return compute_check(xla_files, *h100_node(1), *facts)


@pytest.mark.parametrize("name", ["libdevice", "ptxas"])
def test_missing_file_fails_with_the_searched_folders_and_the_wheel(name: Literal["libdevice", "ptxas"]) -> None:
    file = XlaFile(name=name, status="missing", searched=("/a", "/b", "/c", "/d", "/e"))
    finding = judged(libraries(xla_files=(file,))).findings[0].finding
    assert finding.subject == name
    assert "/a, /b, /c and 2 more" in finding.observed
    assert finding.remedy.commands == (f"{PYTHON} -m pip install nvidia-cuda-nvcc-cu12==12.5.82",)
    assert finding.rollback.commands == (f"{PYTHON} -m pip uninstall -y nvidia-cuda-nvcc-cu12",)


def test_unknown_release_gets_the_wheel_of_its_cuda() -> None:
    missing = libraries(xla_files=(XlaFile(name="ptxas", status="missing"),))
    finding = judged(missing, tensorflow(version="2.99.0", cuda_version="13.1")).findings[0].finding
    assert "/" not in finding.observed
    assert finding.remedy.commands == (f"{PYTHON} -m pip install nvidia-cuda-nvcc-cu13",)


def test_found_files_are_evidence() -> None:
    result = judged()
    assert result.status is Status.PASS
    assert [item.subject for item in result.evidence] == ["libdevice", "ptxas"]


def test_build_without_cuda_is_skipped() -> None:
    assert judged(no_libraries()).status is Status.SKIP
