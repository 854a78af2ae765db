"""kdoctor, installed by pip in a separate environment: its commands, and the environment that it examines."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers.apart import build_wheel, make_environment, pip_install
from helpers.command import captured, environ, make_target

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the folders of environments differ on Windows")


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = make_environment(tmp_path_factory.mktemp("apart") / "environment")
    pip_install(environment, build_wheel(tmp_path_factory.mktemp("wheel")))
    return environment


def run(environment: Path, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = [str(environment / "bin" / command[0]), *command[1:]]
    done = captured(program, env=environ(), cwd=cwd or environment, timeout=120)
    assert "Traceback" not in done.stderr
    return done


def check(environment: Path, cwd: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run(environment, "keras-doctor", "check", "-c", "cpu-smoke", "--no-smoke", *options, cwd=cwd)


def chosen(done: subprocess.CompletedProcess[str]) -> str:
    """The first line of the report, without the version of kdoctor."""
    return " ".join(done.stdout.split("\n\n")[0].split()).partition(", ")[2]


def installs(screen: str) -> set[str]:
    """The interpreters for which the screen has a command that installs packages."""
    patterns = (r"(\S+) -m pip install", r"uv pip install --python (\S+)")
    return {path for pattern in patterns for path in re.findall(pattern, screen)}


COMMANDS = [("kdoctor",), ("keras-doctor",), ("python", "-m", "kdoctor")]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_prints_its_name(apart: Path, command: tuple[str, ...]) -> None:
    done = run(apart, *command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: {' '.join(command)} [OPTIONS]" in done.stdout
    hint = run(apart, *command, "check", "--python").stderr.split(": ")[-1]
    pasted = captured(["sh", "-c", hint], env=environ(), cwd=apart)
    assert "--python " in pasted.stdout, hint


def test_no_fix_is_printed_for_kdoctors_environment(apart: Path, tmp_path: Path) -> None:
    done = check(apart, tmp_path)
    assert done.returncode == 1
    assert "keras-doctor check --python PATH" in done.stdout
    assert not installs(done.stdout)
    assert installs(check(apart, tmp_path, "--python", str(apart)).stdout) == {f"{apart}/bin/python"}


def test_environment_of_the_project_is_examined_and_fixed(apart: Path, tmp_path: Path) -> None:
    make_target(tmp_path / ".venv")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "src").mkdir()
    (tmp_path / "src/sitecustomize.py").write_text(
        "raise RuntimeError('kdoctor ran a file of the working directory')\n"
    )
    done = check(apart, tmp_path / "src")
    assert chosen(done).startswith(f"{tmp_path}/.venv/bin/python")
    assert installs(done.stdout) == {f"{tmp_path}/.venv/bin/python"}
    assert "working directory" not in done.stdout + done.stderr


def test_broken_environment_of_the_project_is_a_usage_error(apart: Path, tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(tmp_path / "gone")
    done = check(apart, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "broken link" in done.stderr
    assert "--python" in done.stderr


def test_kdoctor_in_the_jobs_environment_examines_that(apart: Path, tmp_path: Path) -> None:
    make_target(tmp_path / ".venv")
    keras = next(apart.glob("lib/python*/site-packages")) / "keras"
    keras.mkdir()
    try:
        (keras / "__init__.py").touch()
        done = check(apart, tmp_path)
    finally:
        shutil.rmtree(keras)
    assert chosen(done).startswith(f"{apart}/bin/python")
    assert f"which has keras (not .venv of the project {tmp_path})" in chosen(done)
    assert installs(done.stdout) == {f"{apart}/bin/python"}
