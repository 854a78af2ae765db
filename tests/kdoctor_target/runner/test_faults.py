import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from kdoctor_target.runner.faults import Fault, find_damage, find_faults


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the search path with the packages ``orchid`` and ``fern``, recorded as pip does."""
    folder = tmp_path / "site"
    for name in ("orchid", "fern"):
        write(folder / name / "__init__.py", "from . import leaf\n" if name == "orchid" else "")
        write(folder / name / "leaf.py", "green = True\n")
        rows = [
            f"{name}/__init__.py,,{len((folder / name / '__init__.py').read_text())}",
            f"{name}/leaf.py,sha256=a,13",
        ]
        rows += [f"{name}-1.0.dist-info/RECORD,,", f"../../bin/{name},,10", f"{name}/leaf.pyc,,"]
        write(folder / f"{name}-1.0.dist-info/RECORD", "\n".join(rows))
        write(folder / f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nVersion: 1.0\n")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def faults_of_import(name: str) -> list[Fault]:
    importlib.invalidate_caches()
    with pytest.raises(ImportError) as caught:
        importlib.import_module(name)
    for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] in ("orchid", "fern")]:
        del sys.modules[loaded]
    return find_faults(caught.value)


def fault(**changes: Any) -> Fault:
    return {"package": "orchid", "version": "1.0", "files": 2, "missing": 0, "changed": 0, **changes}


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


def test_damage_is_found_without_an_import(site: Path, tmp_path: Path) -> None:
    importlib.invalidate_caches()
    assert find_damage(["orchid", "fern", "absent"]) == {"faults": [], "files": 4}
    (site / "orchid/leaf.py").unlink()
    write(site / "fern/leaf.py", "changed = 'on purpose'\n")
    assert find_damage(["orchid", "fern"])["faults"] == [fault(missing=1, file="orchid/leaf.py")]
    assert find_damage(["fern"]) == {"faults": [], "files": 2}


def test_what_the_folder_of_the_script_hides_is_found(site: Path, tmp_path: Path) -> None:
    write(tmp_path / "job/fern.py", "")
    write(tmp_path / "job/random.py", "")
    write(tmp_path / "job/train.py", "")
    found = find_damage(["orchid", "fern"], str(tmp_path / "job"))["faults"]
    assert [(item["package"], Path(item["file"]).name) for item in found] == [
        ("fern", "fern.py"),
        ("python", "random.py"),
    ]
    assert all(item["shadowed"] for item in found)


def test_own_environment_is_intact() -> None:
    found = find_damage(["pytest", "pluggy", "numpy"])
    assert found["faults"] == []
    assert found["files"] > 100
