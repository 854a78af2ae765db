"""Choosing the interpreter."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from kdoctor.probes.process.child import Children, ChildrenEnded
from kdoctor.probes.target import TargetError, choose_target

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-ins for interpreters are shell scripts")

OWN_VERSION = ".".join(map(str, sys.version_info[:3]))


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environments") / "job"
    venv.create(folder, with_pip=False, symlinks=True)
    return folder


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def answering(path: Path, version: str) -> Path:
    """A program that prints a version like an interpreter."""
    return script(path, f"printf '\\036[{version}]\\n'")


def test_default_is_kdoctors_interpreter() -> None:
    chosen = choose_target(None, {})
    assert (chosen.python, chosen.chosen_by, chosen.version) == (sys.executable, "kdoctor's own", OWN_VERSION)


def test_virtual_environment_precedes_conda(environment: Path, tmp_path: Path) -> None:
    chosen = choose_target(None, {"VIRTUAL_ENV": str(environment), "CONDA_PREFIX": str(tmp_path)})
    assert chosen.chosen_by == "active virtual environment"
    # The link is not resolved, because its target is a Python without the packages of the environment.
    assert chosen.python == str(environment / "bin/python")
    assert chosen.version == OWN_VERSION


def test_active_conda_environment_is_chosen(tmp_path: Path) -> None:
    python = answering(tmp_path / "bin/python", "3, 12, 4")
    chosen = choose_target(None, {"CONDA_PREFIX": str(tmp_path), "VIRTUAL_ENV": ""})
    assert (chosen.python, chosen.chosen_by, chosen.version) == (str(python), "active conda environment", "3.12.4")


def test_option_precedes_environments(environment: Path, tmp_path: Path) -> None:
    chosen = choose_target(str(environment / "bin/python"), {"VIRTUAL_ENV": str(tmp_path)})
    assert (chosen.chosen_by, chosen.python) == ("--python", str(environment / "bin/python"))


def test_option_may_be_a_folder(environment: Path) -> None:
    assert choose_target(str(environment), {}).python == str(environment / "bin/python")


def test_option_may_be_a_relative_folder(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(environment.parent)
    assert choose_target("job", {}).python == str(environment / "bin/python")


def test_option_may_be_a_name_on_path(environment: Path) -> None:
    assert choose_target("python", {"PATH": str(environment / "bin")}).python == str(environment / "bin/python")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("/nowhere/bin/python", "no such file"),
        ("no-such-python", "no-such-python"),
        ("", "--python is empty"),
        ("/dev/null", "/dev/null"),
        ("a\0b", "a\0b"),
    ],
)
def test_missing_interpreter_is_a_target_error(option: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        choose_target(option, {"PATH": ""})


def test_folder_without_python_is_a_target_error(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no Python in this folder"):
        choose_target(str(tmp_path), {})


def test_broken_link_is_reported(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(tmp_path / "gone")
    with pytest.raises(TargetError, match="broken link"):
        choose_target(str(tmp_path / "python"), {})


def test_environment_without_python_suggests_the_option(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"active virtual environment .* has no Python: .*--python"):
        choose_target(None, {"VIRTUAL_ENV": str(tmp_path)})


@pytest.mark.parametrize("text", ["exit 0", "echo Python 3.11", "exit 3", "printf '\\036{}\\n'", "kill -SEGV $$"])
def test_other_program_is_a_target_error(tmp_path: Path, text: str) -> None:
    python = script(tmp_path / "python", text)
    with pytest.raises(TargetError, match=re.escape(f"{python} is not a Python interpreter")):
        choose_target(str(python), {})


def test_other_programs_error_output_is_shown(tmp_path: Path) -> None:
    python = script(tmp_path / "python", "echo 'shim: python is not installed' >&2; exit 127")
    with pytest.raises(TargetError, match=r"status 127 .shim: python is not installed"):
        choose_target(str(python), {})


@pytest.mark.parametrize("version", ["2, 7, 18", "3, 8, 19"])
def test_old_python_is_a_target_error(tmp_path: Path, version: str) -> None:
    python = answering(tmp_path / "python", version)
    with pytest.raises(TargetError, match=r"Python [23][\d.]+, .* 3\.9 "):
        choose_target(str(python), {})


def test_oldest_supported_python_is_accepted(tmp_path: Path) -> None:
    assert choose_target(str(answering(tmp_path / "python", "3, 9, 0")), {}).version == "3.9.0"


def test_hanging_interpreter_is_a_target_error(tmp_path: Path) -> None:
    python = script(tmp_path / "python", "sleep 30")
    with pytest.raises(TargetError, match=r"0\.3 s"):
        choose_target(str(python), {"PATH": os.defpath}, deadline_s=0.3)


def test_output_at_start_up_is_ignored(tmp_path: Path) -> None:
    python = script(tmp_path / "python", "echo hello; printf '\\036[3, 11, 7]\\n'; echo bye")
    assert choose_target(str(python), {}).version == "3.11.7"


def test_interruption_is_not_a_usage_error(tmp_path: Path) -> None:
    children = Children()
    children.end_all()
    with pytest.raises(ChildrenEnded):
        choose_target(str(answering(tmp_path / "python", "3, 11, 7")), {}, children)


def test_question_is_valid_in_any_python() -> None:
    from kdoctor.probes.target import _QUESTION

    compile(_QUESTION, "question", "exec")
    answer = subprocess.run([sys.executable, "-S", "-E", "-c", _QUESTION], capture_output=True, check=True, text=True)
    assert answer.stdout == f"\n\x1e[{sys.version_info[0]}, {sys.version_info[1]}, {sys.version_info[2]}]\n"
