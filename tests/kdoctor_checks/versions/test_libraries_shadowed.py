from __future__ import annotations

from typing import Any

from helpers.facts import SITE, environment, h100_node
from helpers.facts.libraries import libraries, library, without_wheels
from kdoctor.engine.report import Result
from kdoctor.facts import LibraryCopy
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.libraries_shadowed import libraries_shadowed

WHEEL = LibraryCopy(path=f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9", found_by="RUNPATH")


def judged(**changes: Any) -> Result:
    values: dict[str, Any] = {
        "path": "/opt/conda/lib/libcudnn.so.9",
        "found_by": "LD_LIBRARY_PATH",
        "package": None,
        "package_version": None,
        "other_copies": (WHEEL,),
        **changes,
    }
    found = libraries(library("cudnn", **values))
    return compute_check(libraries_shadowed, *h100_node(1), found, environment(LD_LIBRARY_PATH="/opt/conda/lib:/a b"))


def test_shadowing_copy_fails_with_both_paths() -> None:
    finding = judged().findings[0].finding
    assert finding.subject == "libcudnn.so.9"
    assert "/opt/conda/lib/libcudnn.so.9 (LD_LIBRARY_PATH)" in finding.observed
    assert WHEEL.path in finding.observed
    assert finding.remedy.commands == ("export LD_LIBRARY_PATH='/a b'",)
    assert finding.rollback.commands == ("export LD_LIBRARY_PATH='/opt/conda/lib:/a b'",)


def test_folder_of_the_wheel_on_the_path_shadows_nothing() -> None:
    assert judged(package="nvidia-cudnn-cu12", package_version="9.24.0.43").status is Status.PASS


def test_system_library_without_a_wheel_shadows_nothing() -> None:
    assert judged(other_copies=()).status is Status.PASS
    assert judged(found_by="ld.so.cache").status is Status.PASS
    not_searched = LibraryCopy(path=WHEEL.path, found_by="not searched")
    assert judged(other_copies=(not_searched,)).status is Status.PASS


def test_missing_libraries_are_skipped() -> None:
    assert compute_check(libraries_shadowed, *h100_node(1), without_wheels()).status is Status.SKIP


def test_one_command_removes_all_shadowing_folders() -> None:
    blas = LibraryCopy(path=f"{SITE}/nvidia/cublas/lib/libcublas.so.12", found_by="RUNPATH")
    places: dict[str, Any] = {"found_by": "LD_LIBRARY_PATH", "package": None, "package_version": None}
    found = libraries(
        library("cudnn", path="/opt/conda/lib/libcudnn.so.9", other_copies=(WHEEL,), **places),
        library("cublas", path="/opt/cuda/lib64/libcublas.so.12", other_copies=(blas,), **places),
    )
    path = environment(LD_LIBRARY_PATH="/opt/conda/lib:/keep:/opt/cuda/lib64")
    result = compute_check(libraries_shadowed, *h100_node(1), found, path)
    assert {item.finding.remedy.commands for item in result.findings} == {("export LD_LIBRARY_PATH=/keep",)}
    assert len({item.finding.brief for item in result.findings}) == 1
