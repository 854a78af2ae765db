import importlib
import sys
from pathlib import Path

import pytest

from helpers.recorded_packages import fault, site, write
from kdoctor_target.runner.faults import Fault, find_faults

__all__ = ["site"]


def faults_of_import(name: str) -> list[Fault]:
    importlib.invalidate_caches()
    with pytest.raises(ImportError) as caught:
        importlib.import_module(name)
    for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] in ("orchid", "fern")]:
        del sys.modules[loaded]
    return find_faults(caught.value)


def test_missing_file_is_found(site: Path) -> None:
    (site / "orchid/leaf.py").unlink()
    assert faults_of_import("orchid") == [fault(missing=1, file="orchid/leaf.py")]


def test_only_the_package_of_the_error_is_at_fault(site: Path) -> None:
    for name in ("orchid", "fern"):
        (site / name / "leaf.py").unlink()
    assert [found["package"] for found in faults_of_import("orchid")] == ["orchid"]


def test_missing_package_is_found(site: Path) -> None:
    for path in (site / "orchid").iterdir():
        path.unlink()
    (site / "orchid").rmdir()
    assert faults_of_import("orchid") == [fault(missing=2, file="orchid/__init__.py")]


def test_empty_file_in_the_error_is_found(site: Path) -> None:
    write(site / "orchid/__init__.py", "from .leaf import green\n")
    write(site / "orchid/leaf.py", "")
    (found,) = faults_of_import("orchid")
    assert (found["changed"], found["missing"]) == (2, 0)


def test_changed_file_without_relation_to_the_error_is_no_fault(site: Path) -> None:
    write(site / "fern/leaf.py", "green = False  # on purpose\n")
    write(site / "orchid/__init__.py", "import nothing_of_that_name\n")
    assert [found["package"] for found in faults_of_import("orchid")] == ["orchid"]


def test_healthy_package_has_no_fault(site: Path) -> None:
    assert find_faults(ImportError("cannot import name 'x' from 'orchid'", name="orchid")) == []


def test_unreadable_record_hides_no_error(site: Path) -> None:
    (site / "orchid-1.0.dist-info/RECORD").write_bytes(b"\xff\xfe")
    assert find_faults(ImportError("no")) == []


def test_file_in_an_earlier_folder_shadows_the_package(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "mine/fern.py", "")
    write(site / "orchid/__init__.py", "from fern import leaf\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "mine"), *sys.path])
    shadowed = [found for found in faults_of_import("orchid") if found.get("shadowed")]
    assert [(found["package"], found["file"]) for found in shadowed] == [("fern", str(tmp_path / "mine/fern.py"))]


def test_cause_of_an_error_is_searched_too(site: Path) -> None:
    (site / "orchid/leaf.py").unlink()
    with pytest.raises(ImportError) as cause:
        importlib.import_module("orchid")
    error = RuntimeError("the framework cannot be imported")
    error.__cause__ = cause.value
    assert find_faults(error) == [fault(missing=1, file="orchid/leaf.py")]


def test_real_installation_has_no_fault() -> None:
    """The records of pip and uv name files that exist."""
    found = find_faults(ImportError("cannot import name 'hookimpl' from 'pluggy'", name="pluggy"))
    assert [item for item in found if item["package"] in ("pluggy", "pytest")] == []
