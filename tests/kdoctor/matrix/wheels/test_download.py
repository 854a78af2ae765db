"""Which wheel pip is asked for, and what is reported if it finds none."""

import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from helpers.cases import cases
from kdoctor.errors import UsageError
from kdoctor.matrix.wheels import download as module
from kdoctor.matrix.wheels.download import download, pinned

PIP = """#!/bin/sh
echo "$@" >> "$PIP_LOG"
for last; do :; done
case " $* " in
  *" --python-version $PIP_HAS "*) while [ "$1" != --dest ]; do shift; done; touch "$2/$PIP_FILE" ;;
  *) echo "no matching distribution of $last" >&2; exit "$PIP_EXIT" ;;
esac
"""


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pip on PATH that has a wheel for one Python; the log of its arguments."""
    program, log = tmp_path / "bin" / "pip", tmp_path / "log"
    program.parent.mkdir()
    program.write_text(PIP)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    for name, value in {"PIP_LOG": str(log), "PIP_HAS": "3.11", "PIP_FILE": "x.whl", "PIP_EXIT": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    return log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


@pytest.mark.parametrize("text", ["tensorflow==2.21.0", "tensorflow[and-cuda]==2.21.0"])
def test_exact_version_is_pinned(text: str) -> None:
    found = pinned(text)
    assert found is not None
    assert (found.name, str(found.specifier)) == ("tensorflow", "==2.21.0")


@cases(
    "tensorflow",
    "tensorflow>=2.21",
    "tensorflow==2.21,!=2.21.1",
    "tensorflow @ file:///x.whl",
    "not a ( one",
    "",
    "x===",
)
def test_anything_else_is_not_pinned(text: str) -> None:
    assert pinned(text) is None


def test_wheel_of_the_first_python_is_taken(pip: Path, folder: Path) -> None:
    assert download(Requirement("tensorflow==2.21.0"), folder) == folder / "x.whl"
    (arguments,) = pip.read_text().splitlines()
    words = arguments.split()
    assert (words[0], words[-1]) == ("download", "tensorflow==2.21.0")
    assert {"--no-deps", "--pre", "--only-binary=:all:"} <= set(words)
    assert [words[at + 1] for at, word in enumerate(words) if word == "--platform"] == [
        "manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64",
    ]  # fmt: skip


def test_other_pythons_and_processors_are_tried(pip: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_HAS", "3.13")
    assert download(Requirement("tensorflow==2.21.0"), folder, "aarch64") == folder / "x.whl"
    tried = [line.split() for line in pip.read_text().splitlines()]
    assert [words[words.index("--python-version") + 1] for words in tried] == ["3.11", "3.10", "3.12", "3.13"]
    assert all("manylinux2014_aarch64" in words for words in tried)


@pytest.mark.parametrize("change", [{"PIP_HAS": "2.7"}, {"PIP_FILE": "x.tar.gz"}, {"PIP_HAS": "2.7", "PIP_EXIT": "0"}])
def test_first_reason_is_stated_if_there_is_no_wheel(
    pip: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, str]
) -> None:
    for name, value in change.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=r"pip finds no Linux x86_64 wheel of tensorflow==2\.21\.0") as raised:
        download(Requirement("tensorflow==2.21.0"), folder)
    assert len(pip.read_text().splitlines()) == 6
    assert ("no matching distribution of tensorflow==2.21.0" in str(raised.value)) == (change == {"PIP_HAS": "2.7"})
    assert "--wheel" in (raised.value.hint or "")


def test_pip_of_this_environment_comes_first(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module._pip() == (str(pip.parent / "bin" / "pip"),)
    monkeypatch.setattr(module, "find_spec", lambda name: ModuleSpec(name, None))
    assert module._pip() == (sys.executable, "-m", "pip")
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    assert module._pip() == (sys.executable, "-m", "pip")
    (pip.parent / "bin" / "pip").rename(pip.parent / "bin" / "pip3")
    monkeypatch.setenv("PATH", str(pip.parent / "bin"))
    assert module._pip() == (str(pip.parent / "bin" / "pip3"),)
