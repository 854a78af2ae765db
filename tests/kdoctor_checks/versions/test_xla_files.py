from __future__ import annotations

from typing import Literal

import pytest

from helpers.facts import PYTHON, h100_node, packages, tensorflow
from helpers.facts.libraries import libraries, no_libraries
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Libraries, PciDevices, Target, XlaFile
from kdoctor.matrix.load import shipped_matrix
from kdoctor.model import Evidence, NotApplicable, Status
from kdoctor.testing import compute_check, fact_table
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


def test_only_a_build_for_gpus_with_files_of_xla_is_judged() -> None:
    def kinds(found: Libraries) -> list[type[object]]:
        facts = fact_table(*h100_node(1), found)
        wanted = (found, tensorflow(), packages(), facts[Target], facts[PciDevices], shipped_matrix())
        return [type(outcome) for outcome in xla_files.function(*wanted)]

    file = XlaFile(name="ptxas", status="found", path="/a/ptxas", found_by="PATH")
    assert kinds(libraries(xla_files=(file,))) == [Evidence]
    assert kinds(libraries(xla_files=())) == [NotApplicable]
    assert NotApplicable in kinds(libraries(xla_files=(file,), cuda_build=False))


def test_found_files_are_evidence() -> None:
    result = judged()
    assert result.status is Status.PASS
    assert [item.subject for item in result.evidence] == ["libdevice", "ptxas"]


def test_build_without_cuda_is_skipped() -> None:
    assert judged(no_libraries()).status is Status.SKIP
