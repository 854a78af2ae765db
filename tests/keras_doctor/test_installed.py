"""kdoctor, installed by pip in a separate environment: the environment that it examines, and its name."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers.apart import ROOT, build_wheel, make_environment, pip_install
from helpers.command import environ, make_target
from helpers.wheels import wheel

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the folders of environments differ on Windows")

# The files and the command of kdoctor 0.3.0 on the public package index. Its code is not needed.
OTHER = {
    "kdoctor/__init__.py": "",
    "kdoctor/cli.py": "def app() -> None:\n    print('cluster')\n",
    "kdoctor/kube.py": "",
    "kdoctor-0.3.0.dist-info/entry_points.txt": "[console_scripts]\nkdoctor = kdoctor.cli:app\n",
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("other")
    wheel(folder, "kdoctor", "0.3.0", OTHER)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory, ours: Path) -> Path:
    environment = make_environment(tmp_path_factory.mktemp("apart") / "environment")
    pip_install(environment, ours)
    return environment


def run(environment: Path, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = [str(environment / "bin" / command[0]), *command[1:]]
    done = subprocess.run(
        program, check=False, capture_output=True, text=True, env=environ(), cwd=cwd or environment, timeout=120
    )
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


COMMANDS = [("kdoctor",), ("keras-doctor",), ("python", "-m", "kdoctor"), ("python", "-m", "keras_doctor")]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_prints_its_name(apart: Path, command: tuple[str, ...]) -> None:
    done = run(apart, *command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: {' '.join(command)} [OPTIONS]" in done.stdout


def test_no_fix_is_printed_for_kdoctors_environment(apart: Path, tmp_path: Path) -> None:
    done = check(apart, tmp_path)
    assert done.returncode == 1
    assert "kdoctor check --python PATH" in done.stdout
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


def test_other_distribution_of_the_same_name(apart: Path, ours: Path, other: Path) -> None:
    def every_command(expected: tuple[int, str], *words: str) -> str:
        for command in COMMANDS:
            done = run(apart, *command, "--version")
            assert (done.returncode, done.stdout) == expected, command
            assert [done.stderr.count(word) for word in words] == [1] * len(words), command
        return done.stderr

    # The other one after ours: its empty kdoctor/__init__.py replaced ours.
    pip_install(apart, other)
    message = every_command((2, ""), "0.3.0", "kdoctor/__init__.py")

    # The printed command, then the other one before ours.
    subprocess.run(shlex.split(message.splitlines()[-1]), check=True, capture_output=True)
    assert not list(apart.glob("bin/*doctor"))
    pip_install(apart, other)
    assert run(apart, "kdoctor").stdout == "cluster\n"

    # The other one in site-packages, ours in folders that follow it, as an editable installation.
    site = next(apart.glob("lib/python*/site-packages"))
    folders = (ROOT / name for name in ("doctor", "checks", "checklists"))
    (site / "editable.pth").write_text("".join(f"{folder}\n" for folder in folders))
    done = run(apart, "python", "-m", "keras_doctor", "--version")
    assert (done.returncode, done.stdout) == (2, "")
    assert str(site / "kdoctor") in done.stderr
    (site / "editable.pth").unlink()

    # Ours replaced the other one's files.
    pip_install(apart, ours)
    every_command((0, "kdoctor 0.1.0\n"), "0.3.0")

    # Uninstalling the other one removed kdoctor/__init__.py and bin/kdoctor.
    subprocess.run([apart / "bin/python", "-m", "pip", "uninstall", "-yq", "kdoctor"], check=True, capture_output=True)
    for command in COMMANDS[1:]:
        done = run(apart, *command, "--version")
        assert (done.returncode, done.stdout) == (2, ""), command
        assert "missing" in done.stderr
    pip_install(apart, "--force-reinstall", ours)
    assert every_command((0, "kdoctor 0.1.0\n")) == ""
