"""The commands of the README work."""

import json
import os
import re
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from docs.generator.handwritten import with_screens

from helpers.command import captured, environ, make_target

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
TABLE = re.findall(r"^\| [^|]+ \| `(kdoctor [^`]+)` \|$", README, re.MULTILINE)
COMMANDS = [*(line for block in BLOCKS for line in block.splitlines()), *TABLE]
"""The lines of shell blocks, and the commands of the table."""

BY_CI = {"make smoke-test", "make test"}
NOT_RUN = {
    "make smoke-test": "CI runs it",
    "kdoctor check --checklist cpu-smoke": "make smoke-test runs it",
    "uv tool install .": "needs a network; a separate test installs a wheel of this checkout",
    "pipx install .": "needs a network",
    "python -m pip install .": "changes this environment",
    "kdoctor check --model train.py": "a placeholder; tests/docs runs it with a job",
}
"""Commands that are not run here, and why."""

# These commands use a checklist that fails on machines without GPUs.
NEEDS_GPUS = {
    "kdoctor check",
    "kdoctor check --no-smoke",
    "kdoctor check --no-smoke --output junit=kdoctor.xml",
    "kdoctor check --python /path/to/venv",
}
LOG = "Could not find cuda drivers on your machine, GPU will not be used.\nNum GPUs Available: 0\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of all commands. Later commands use files of earlier ones."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "train.log").write_text(LOG, encoding="utf-8")
    return folder


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = environ(PATH=path, KDOCTOR_NO_HISTORY="0", XDG_STATE_HOME=str(folder / "state"))
    return captured(
        ["/bin/sh", "-c", command.replace("/path/to/venv", shlex.quote(sys.prefix))], cwd=folder, env=given, timeout=300
    )


@pytest.mark.tensorflow
def test_readme_commands_work(folder: Path) -> None:
    for command in COMMANDS:
        if command in NOT_RUN:
            continue
        done = run(command, folder)
        assert "Traceback" not in done.stderr, command
        assert done.returncode == (
            1 if command in NEEDS_GPUS and not Path("/proc/driver/nvidia/version").exists() else 0
        ), (command, done.stdout)


def test_every_command_is_run_or_has_a_reason() -> None:
    assert set(COMMANDS) >= NOT_RUN.keys() | NEEDS_GPUS
    assert len(TABLE) == sum(line.startswith("| ") and "`kdoctor " in line for line in README.splitlines())


def test_ci_runs_its_two_commands() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert {line for line in script.splitlines() if line.startswith("make ")} == {*BY_CI, "make bench-start || true"}


def test_screens_are_up_to_date() -> None:
    assert with_screens(README) == README, "run: make docs"


def test_linked_pages_exist() -> None:
    pages = re.findall(r"\]\(([\w./-]+)\)", README)
    assert pages
    installed = [page for page in pages if "/docs/" not in page or (ROOT / page).parents[1].is_dir()]
    assert [page for page in installed if not (ROOT / page).is_file()] == []


def test_separate_installation_examines_another_environment(tmp_path: Path) -> None:
    """Install a wheel of this checkout into a separate environment, as pipx does."""
    builder = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    wheels = tmp_path / "wheels"
    build = [*builder, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(wheels)]
    subprocess.run([*build, str(_copy(tmp_path))], check=True)
    venv.create(tmp_path / "separate", with_pip=False, symlinks=True)
    python = tmp_path / "separate" / "bin" / "python"
    subprocess.run(
        [*builder, "--python", python, "install", "--quiet", "--no-deps", "--no-index", *wheels.glob("*.whl")],
        check=True,
    )
    # The package comes from the wheel. The dependencies come from this environment.
    site = next((tmp_path / "separate").glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(next(path for path in sys.path if path.endswith("site-packages")) + "\n")
    job = make_target(tmp_path / "job", tensorflow="")
    command: list[str | Path] = [
        tmp_path / "separate" / "bin" / "kdoctor",
        "check",
        "--no-smoke",
        "-f",
        "json",
        "--python",
        job,
    ]
    done = captured(command, env=environ(), cwd=tmp_path)
    report = json.loads(done.stdout)
    assert report["target"].startswith(str(job / "bin" / "python"))
    assert "--python" in report["target"]
    found = {result["id"]: result["status"] for result in report["results"]}
    assert found["versions.tensorflow-installed"] == "pass"


def _copy(folder: Path) -> Path:
    """Copy the sources without build products, so that the build does not write to the checkout."""
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "doctor", "checks", "checklists"):
        subprocess.run(["/bin/cp", "-r", ROOT / name, source / name], check=True)
    for built in source.glob("*/*.egg-info"):
        subprocess.run(["/bin/rm", "-r", built], check=True)
    return source
