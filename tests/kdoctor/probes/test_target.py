"""Choosing the interpreter."""

import errno
import os
import re
import stat
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases
from kdoctor.probes.process.child import Children, ChildrenEnded
from kdoctor.probes.target import TargetError, choose_target, own_framework

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


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """kdoctor is installed without the packages of a job."""
    monkeypatch.setattr("kdoctor.probes.target._FRAMEWORKS", ("no_such_framework",))


OTHER = Path("other")
"""The environment of the fixture."""
PROJECT = ".venv of the project {folder}"


@cases(
    (("pydantic",), None, None, False, "pydantic"),
    ((), None, None, True, ""),
    ((), OTHER, OTHER, False, PROJECT),
    (("pydantic",), OTHER, None, False, "{folder}"),
    (("pydantic",), Path(sys.prefix), None, False, PROJECT),
    ((), Path(sys.prefix), None, True, ""),
)
def test_own_environment_is_that_of_the_job_if_it_has_a_framework(  # noqa: PLR0917 - one table
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environment: Path,
    frameworks: tuple[str, ...], linked: Path | None, expected: Path | None, stand_in: bool, chosen_by: str,  # noqa: FBT001
) -> None:  # fmt: skip
    """The environment of the project, if it has one, comes after one with a framework."""
    monkeypatch.setattr("kdoctor.probes.target._FRAMEWORKS", ("no_such_framework", *frameworks))
    if linked:
        (tmp_path / ".venv").symlink_to(environment if linked == OTHER else linked)
    chosen = choose_target(None, {}, folder=tmp_path)
    python = str(tmp_path / ".venv/bin/python") if expected else sys.executable
    assert (chosen.python, chosen.version, chosen.stand_in) == (python, OWN_VERSION, stand_in)
    assert chosen_by.format(folder=tmp_path) in chosen.chosen_by
    assert own_framework() == (frameworks[0] if frameworks else None)


def test_project_without_its_environment_says_how_to_create_it(apart: None, tmp_path: Path) -> None:
    (tmp_path / "uv.lock").touch()
    (tmp_path / "src").mkdir()
    chosen = choose_target(None, {}, folder=tmp_path / "src")
    assert (chosen.stand_in, chosen.chosen_by.endswith(f"uv.lock in {tmp_path}: uv sync")) == (True, True)


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_active_environment_precedes_the_project(apart: None, tmp_path: Path, environment: Path, variable: str) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    chosen = choose_target(None, {variable: str(environment)}, folder=tmp_path)
    assert chosen.python == str(environment / "bin/python")


@cases({"option": sys.prefix}, {"environ": {"VIRTUAL_ENV": sys.prefix}}, {"environ": {"CONDA_PREFIX": sys.prefix}})
def test_named_own_environment_is_no_stand_in(apart: None, tmp_path: Path, named: dict[str, Any]) -> None:
    chosen = choose_target(named.get("option"), named.get("environ", {}), folder=tmp_path)
    assert not chosen.stand_in


def test_package_in_the_working_directory_is_no_framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("raise RuntimeError")
    monkeypatch.setattr("kdoctor.probes.target._FRAMEWORKS", ("only_here",))
    monkeypatch.syspath_prepend(tmp_path)
    assert own_framework() == "only_here"
    assert own_framework(tmp_path) is None


def test_deleted_working_directory_has_no_project(apart: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert choose_target(None, {}).stand_in


@cases("exit 1", "sleep 30", "printf '\\036[3, 8, 1]\\n'", "printf '\\036[2, 7, 18]\\n'", "kill -SEGV $$")
def test_unusable_interpreter_of_a_project_is_an_error_with_a_way_out(apart: None, tmp_path: Path, text: str) -> None:
    script(tmp_path / ".venv/bin/python", text)
    (tmp_path / ".venv/pyvenv.cfg").touch()
    with pytest.raises(TargetError, match=re.escape(str(tmp_path / ".venv/bin/python"))) as error:
        choose_target(None, {"PATH": os.defpath}, folder=tmp_path, deadline_s=0.3)
    assert "--python" in str(error.value)


def test_broken_environment_of_a_project_is_an_error_with_a_way_out(apart: None, tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(tmp_path / "gone")
    with pytest.raises(TargetError, match="broken link") as error:
        choose_target(None, {}, folder=tmp_path)
    assert "--python" in str(error.value)


@cases(("exit 127", False), ("printf '\\036[3, 12, 4]\\n'", True))
def test_virtual_environment_is_linked_to_a_python_that_starts(tmp_path: Path, text: str, starts: bool) -> None:  # noqa: FBT001
    """A name on PATH may be a shim of pyenv that finds nothing. Nothing is deleted then, and uv can get that Python."""
    job, programs = tmp_path / "my job", tmp_path / "programs"
    (job / "bin").mkdir(parents=True)
    (job / "lib/python3.12").mkdir(parents=True)
    (job / "bin/python").symlink_to("python3")
    (job / "bin/python3").symlink_to(tmp_path / "gone")
    (job / "pyvenv.cfg").write_text("include-system-site-packages = true\n")
    script(programs / "python3.12", text)
    said = _refusal(job, programs)
    assert f"bin/python is a broken link to {tmp_path / 'gone'}\n" in said
    assert said.endswith(f"python3.12 -m venv --upgrade --system-site-packages '{job}'")
    assert ("again: install python3.12, then python3.12 --version && find" in said) is not starts
    script(programs / "uv", "")
    uv = f"again: uv venv --allow-existing --python 3.12 --system-site-packages '{job}'"
    assert _refusal(job, programs).endswith(uv) is not starts


def _refusal(environment: Path, programs: Path) -> str:
    with pytest.raises(TargetError) as error:
        choose_target(str(environment), {"PATH": str(programs)})
    return str(error.value)


def test_virtual_environment_precedes_conda(environment: Path, tmp_path: Path) -> None:
    chosen = choose_target(None, {"VIRTUAL_ENV": str(environment), "CONDA_PREFIX": str(tmp_path)})
    assert chosen.chosen_by == "the active virtual environment"
    # The link is not resolved, because its target is a Python without the packages of the environment.
    assert chosen.python == str(environment / "bin/python")
    assert chosen.version == OWN_VERSION


def test_active_conda_environment_is_chosen(tmp_path: Path) -> None:
    python = answering(tmp_path / "bin/python", "3, 12, 4")
    chosen = choose_target(None, {"CONDA_PREFIX": str(tmp_path), "VIRTUAL_ENV": ""})
    assert (chosen.python, chosen.chosen_by, chosen.version) == (str(python), "the active conda environment", "3.12.4")


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


@cases(
    ("/nowhere/bin/python", "no such file"),
    ("no-such-python", "no-such-python"),
    ("", "--python is empty"),
    ("/dev/null", "/dev/null"),
    ("a\0b", "a\0b"),
)
def test_missing_interpreter_is_a_target_error(option: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        choose_target(option, {"PATH": ""})


def test_folder_without_python_is_a_target_error(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no Python in this folder"):
        choose_target(str(tmp_path), {})
    folder = Path(sys.executable).parent
    (tmp_path / ".venv").symlink_to(folder.parent)
    with pytest.raises(TargetError, match=r"did you mean '.*/\.venv'\?"):
        choose_target(str(tmp_path), {})
    assert Path(choose_target(f"{folder}/../bin/python", {}).python) == folder.resolve() / "python"
    assert Path(choose_target(str(folder), {}).python).parent == folder


def test_environment_whose_python_is_gone_is_linked_again(apart: None, tmp_path: Path) -> None:
    release = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folder = tmp_path / "my job/.venv"
    venv.create(folder, with_pip=False, symlinks=True)
    for link in folder.glob("bin/python*"):
        link.unlink()
        link.symlink_to("/opt/removed/bin/python3")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / release).symlink_to(sys.executable)
    environ = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    named_by_option = (str(folder), environ)
    active, of_the_project = (None, {**environ, "VIRTUAL_ENV": str(folder)}), (None, environ)
    commands = set()
    for given, variables in (named_by_option, active, of_the_project):
        with pytest.raises(TargetError, match="/opt/removed/bin/python3") as raised:
            choose_target(given, variables, folder=folder.parent)
        commands.add(str(raised.value.hint).partition(": ")[2])
    (command,) = commands
    subprocess.run(["bash", "-ec", command], check=True, env=environ)
    for given, variables in (named_by_option, active, of_the_project):
        assert choose_target(given, variables, folder=folder.parent).python == str(folder / "bin/python")


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


def test_exhausted_machine_is_not_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Children, "run", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        choose_target(str(answering(tmp_path / "python", "3, 11, 7")), {})


def test_question_is_valid_in_any_python() -> None:
    from kdoctor.probes.target import _QUESTION

    compile(_QUESTION, "question", "exec")
    answer = subprocess.run([sys.executable, "-S", "-E", "-c", _QUESTION], capture_output=True, check=True, text=True)
    assert answer.stdout == f"\n\x1e[{sys.version_info[0]}, {sys.version_info[1]}, {sys.version_info[2]}]\n"
