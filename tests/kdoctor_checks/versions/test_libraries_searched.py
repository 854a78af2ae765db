from __future__ import annotations

import pytest

from helpers.facts import PYTHON, SITE, environment, h100_node, tensorflow
from helpers.facts.libraries import SOLVER_FOLDER, libraries, missing, no_libraries, without_wheels
from kdoctor.engine.report import Result
from kdoctor.facts import Environment, FactGroup, LibraryCopy
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.libraries_searched import libraries_searched


def judged(*facts: FactGroup) -> Result:
    return compute_check(libraries_searched, *h100_node(1), *facts)


def outside(name: str, folder: str) -> FactGroup:
    copy = LibraryCopy(path=f"{folder}/lib{name}.so.11", found_by="not searched")
    return libraries(missing(name, other_copies=(copy,)))


def test_cusolver_of_2_21_is_found_with_its_folder_on_the_path() -> None:
    assert judged().status is Status.PASS


def test_missing_folder_is_added_to_the_path() -> None:
    finding = judged(outside("cusolver", SOLVER_FOLDER), environment()).findings[0].finding
    assert "libcusolver.so.11" in finding.observed
    assert SOLVER_FOLDER in finding.observed
    assert finding.remedy.commands == (
        f'export LD_LIBRARY_PATH={SOLVER_FOLDER}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"',
    )
    assert finding.rollback.commands == ("unset LD_LIBRARY_PATH",)


def test_2_16_1_can_be_replaced_by_a_release_without_the_defect() -> None:
    build = tensorflow(version="2.16.1", cuda_version="12.3", cudnn_version="8")
    finding = judged(build, outside("cusolver", SOLVER_FOLDER)).findings[0].finding
    assert finding.remedy.commands == (f"{PYTHON} -m pip install 'tensorflow[and-cuda]>=2.16.2,==2.16.*'",)
    assert finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow==2.21.0",)


@pytest.mark.parametrize("folder", ["/usr/local/cuda/lib64", f"{SITE}/torch/lib"])
def test_copy_for_another_program_is_ignored(folder: str) -> None:
    assert judged(outside("cusolver", folder)).status is Status.PASS


def test_missing_libraries_are_skipped() -> None:
    assert judged(without_wheels()).status is Status.SKIP
    assert judged(no_libraries()).status is Status.SKIP


def test_unrecorded_path_has_nothing_to_restore() -> None:
    finding = judged(outside("cusolver", SOLVER_FOLDER), Environment(variables={})).findings[0].finding
    assert finding.rollback.kind == "nothing"
