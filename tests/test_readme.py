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

from helpers.command import environ, make_target
from helpers.machines import collecting

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    *(
        line
        for block in re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ),
    *re.findall(r"^\| [^|]+ \| `(kdoctor [^`]+)` \|$", README, re.MULTILINE),
]
"""The lines of shell blocks, and the commands of the table."""

BY_CI = {"make smoke-test", "make test"}
ADDRESS = "git+https://github.com/OWNER/REPO"
NOT_RUN = {
    **dict.fromkeys(BY_CI, "CI runs it"),
    f"uv tool install {ADDRESS}": "needs a network; a separate test installs a wheel of this checkout",
    f"pipx install {ADDRESS}": "needs a network",
    f"python -m pip install {ADDRESS}": "needs a network",
    "kdoctor fleet run --engine slurm --nodes 'node[01-64]'": "needs Slurm; tests/kdoctor_fleet/engines runs it",
    "kdoctor check --model MODULE:FUNCTION --data MODULE:FUNCTION": "a placeholder; tests/docs runs it with a job",
}
"""Commands that are not run here, and why."""

# These commands use a checklist that fails on machines without GPUs.
NEEDS_GPUS = {
    "kdoctor check",
    "kdoctor check --checklist single-gpu-keras",
    "kdoctor check --fix-script fix.sh",
    "kdoctor check --gpus 7",
    "kdoctor check --no-smoke",
    "kdoctor check --no-smoke --output junit=kdoctor.xml",
    "kdoctor check --python /path/to/venv",
    "kdoctor check -v",
}
ON_EIGHT_GPUS = {"kdoctor topology --replicas 4"}
"""Commands that are run on a described machine with eight GPUs."""
TRAIN = "import tensorflow as tf\n\nstrategy = tf.distribute.MirroredStrategy()\n"
LOG = "Could not find cuda drivers on your machine, GPU will not be used.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of all commands. Later commands use files of earlier ones."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    (folder / "train.log").write_text(LOG, encoding="utf-8")
    return folder


def run(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = environ(PATH=path, KDOCTOR_NO_HISTORY="0", XDG_STATE_HOME=str(folder / "state"), **variables)
    return subprocess.run(
        ["/bin/sh", "-c", command.replace("/path/to/venv", shlex.quote(sys.prefix))],
        check=False, capture_output=True, text=True, cwd=folder, env=given, timeout=300,
    )  # fmt: skip


@pytest.mark.tensorflow
def test_readme_commands_work(folder: Path) -> None:
    for command in COMMANDS:
        if command in NOT_RUN:
            continue
        eight = command in ON_EIGHT_GPUS
        variables = collecting.environment("h100-nvswitch", folder / "eight-gpus") if eight else {}
        done = run(command, folder, **variables)
        assert "Traceback" not in done.stderr, command
        assert done.returncode == (1 if command in NEEDS_GPUS and not _has_gpus() else 0), (command, done.stdout)
    assert json.loads((folder / "node7.json").read_text())["schema"] == "kdoctor/snapshot/v1"


def test_every_command_is_run_or_has_a_reason() -> None:
    assert set(COMMANDS) >= NOT_RUN.keys() | NEEDS_GPUS | ON_EIGHT_GPUS
    rows = [line for line in README.splitlines() if line.startswith("| ") and "`kdoctor " in line]
    assert len(rows) == sum(command.startswith("kdoctor ") for command in COMMANDS)


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
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ(), cwd=tmp_path)
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


def _has_gpus() -> bool:
    return Path("/proc/driver/nvidia/version").exists()
