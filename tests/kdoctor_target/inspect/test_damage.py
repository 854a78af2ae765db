import _ctypes
import importlib
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.recorded_packages import fault, site, write
from kdoctor_target.inspect.damage import find_damage
from kdoctor_target.inspect.environment import read_packages

__all__ = ["site"]


def test_damage_is_found_without_an_import(site: Path, tmp_path: Path) -> None:
    importlib.invalidate_caches()
    assert find_damage(["orchid", "fern", "absent"]) == {"faults": [], "files": 4}
    (site / "orchid/leaf.py").unlink()
    write(site / "fern/leaf.py", "changed = 'on purpose'\n")
    assert find_damage(["orchid", "fern"])["faults"] == [fault(missing=1, file="orchid/leaf.py")]
    assert find_damage(["fern"]) == {"faults": [], "files": 2}


@pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")
def test_library_that_is_cut_off_or_of_another_machine_is_found_and_a_stripped_one_is_not(site: Path) -> None:
    importlib.invalidate_caches()
    real = Path(_ctypes.__file__).read_bytes()
    with (site / "orchid-1.0.dist-info/RECORD").open("a") as record:
        record.write(f"\norchid/_leaf.so,,{len(real) + 1}")
    (site / "orchid/_leaf.so").write_bytes(real)
    assert find_damage(["orchid"])["faults"] == []
    (site / "orchid/_leaf.so").write_bytes(real[:1000])
    assert find_damage(["orchid"])["faults"] == [fault(files=3, changed=1, file="orchid/_leaf.so")]
    other = bytearray(real)
    other[18] ^= 0xFF  # e_machine: https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html
    with (site / "orchid-1.0.dist-info/RECORD").open("a") as record:
        record.write(f"\norchid/_root.so,,{len(other)}")
    (site / "orchid/_leaf.so").write_bytes(real)
    (site / "orchid/_root.so").write_bytes(other)
    assert find_damage(["orchid"])["faults"] == [fault(files=4, changed=1, file="orchid/_root.so")]
    (site / "orchid/_root.so").write_bytes(real)
    with (site / "orchid-1.0.dist-info/RECORD").open("a") as record:
        record.write(f"\norchid/_stem.cpython-30-x86_64-linux-gnu.so,,{len(real)}")
    (site / "orchid/_stem.cpython-30-x86_64-linux-gnu.so").write_bytes(real)
    (found,) = find_damage(["orchid"])["faults"]
    assert found["file"] == "orchid/_stem.cpython-30-x86_64-linux-gnu.so"
    (site / f"orchid/_stem{EXTENSION_SUFFIXES[0]}").write_bytes(real)  # a wheel for several releases
    assert find_damage(["orchid"])["faults"] == []


def test_metadata_without_a_version_is_damage(site: Path) -> None:
    importlib.invalidate_caches()
    (site / "orchid-1.0.dist-info/METADATA").write_text("")
    assert find_damage(["orchid"])["faults"] == [fault(changed=1, file="orchid-1.0.dist-info/METADATA")]


def test_files_of_another_distribution_are_found(site: Path) -> None:
    importlib.invalidate_caches()
    for name in ("__init__", "leaf"):
        write(site / f"orchid/{name}.py", "green = 'as in orchid-nightly'\n")
    write(site / "orchid_nightly-2.0.dist-info/RECORD", "orchid/__init__.py,,31\norchid/leaf.py,,31")
    write(site / "orchid_nightly-2.0.dist-info/METADATA", "Name: orchid-nightly\nVersion: 2.0\n")
    (found,) = find_damage(["orchid"])["faults"]
    assert (found["package"], found["file"], found["changed"]) == ("orchid", "orchid/__init__.py", 2)
    assert found["overwritten_by"] == "orchid-nightly"


@cases(
    ("fern.py", True),
    ("fern.pyc", True),
    (f"fern{EXTENSION_SUFFIXES[0]}", True),
    ("fern/__init__.py", True),
    ("fern/leaf.py", False),  # a folder without __init__.py comes last
    ("moss.py", True),  # a distribution of one file
    ("wood/__init__.py", True),  # shared by distributions, none of which has its __init__.py
    ("random.py", True),
    ("random/__init__.py", True),
    ("time.py", False),  # a part of the interpreter
    ("train.py", False),
)
def test_what_the_folder_of_the_script_hides_is_found(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, *, is_hiding: bool
) -> None:
    with (site / "fern-1.0.dist-info/RECORD").open("a") as record:
        record.write("\nmoss.py,,0\nwood/mushroom/__init__.py,,0")
    write(site / "moss.py", "")
    write(site / "wood/mushroom/__init__.py", "")
    write(tmp_path / "job" / file, "")
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    assert sys.version_info < (3, 11) or find_damage(["orchid", "fern"], str(tmp_path / "job"))["faults"] == []
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    found = find_damage(["orchid", "fern"], str(tmp_path / "job"))["faults"]
    package = "python" if file.startswith("random") else "fern"
    expected = [(package, str(tmp_path / "job" / file), True)] if is_hiding else []
    assert [(item["package"], item["file"], item["shadowed"]) for item in found] == expected


def test_path_file_that_puts_another_copy_first_is_found(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "source"
    write(other / "fern-0.9.dist-info/METADATA", "Name: fern\nVersion: 0.9\n")
    write(site / "a.pth", "/elsewhere\n")
    write(site / "fern.pth", f"import sys; sys.path.insert(0, {str(other)!r})\n")
    monkeypatch.setattr(sysconfig, "get_path", {**sysconfig.get_paths(), "purelib": str(site)}.get)
    monkeypatch.syspath_prepend(other)
    expected = {"package": "fern", "version": "1.0", "files": 0, "file": str(site / "fern.pth"), "shadowed": True}
    assert [item for item in find_damage(["orchid", "fern"])["faults"] if item["file"].endswith("pth")] == [expected]
    assert not find_damage(["orchid"])["faults"]
    monkeypatch.setenv("PYTHONPATH", str(other))  # the user's choice
    assert not [item for item in find_damage(["fern"])["faults"] if item["file"].endswith("pth")]


def test_metadata_of_a_version_that_is_gone_is_found_and_listed_last(site: Path) -> None:
    for version in ("0.8", "0.9", "1.1"):  # Python lists them in the order of the file system
        write(site / f"fern-{version}.dist-info/METADATA", f"Name: fern\nVersion: {version}\n")
    write(site / "fern-1.1.dist-info/RECORD", "fern/__init__.py,,0\nfern/leaf.py,,99\nfern/new.py,,3\n")
    importlib.invalidate_caches()
    found = [item for item in find_damage(["orchid", "fern"])["faults"] if item.get("shadowed")]
    assert sorted((item["package"], item["version"]) for item in found) == [("fern", v) for v in ("0.8", "0.9", "1.1")]
    assert {item["file"] for item in found} == {str(site / f"fern-{v}.dist-info") for v in ("0.8", "0.9", "1.1")}
    assert next(item["version"] for item in read_packages() if item["name"] == "fern") == "1.0"


def test_own_environment_is_intact() -> None:
    found = find_damage(["pytest", "pluggy", "numpy"])
    assert found["faults"] == []
    assert found["files"] > 100
