"""Every command of the documentation is run, or listed with the reason why not. (README: tests/test_readme.py.)"""

import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from docs.generator.pages import generated_pages, pages_by_location, written_pages

from helpers.checklist_texts import untrained
from helpers.command import captured, environ, kdoctor
from helpers.kdoctor_fleet.fleets import fleet_of, write
from helpers.machines import collecting
from helpers.tiers import tiered
from kdoctor.catalog.load import load_catalog

DOCS = Path(__file__).parents[2] / "docs"

NOT_RUN = {
    "bash rollback.sh": "changes the environment that it runs in",
    "docker run": "needs a container engine and GPUs",
    "kdoctor check --python /opt/conda/envs/job": "needs conda",
    "kdoctor fleet merge kdoctor-fleet-20260102T030405Z": "needs a run over nodes (make test-fleet)",
    "kdoctor fleet run": "needs nodes (make test-fleet)",
    "kdoctor matrix --python /opt/conda/envs/job": "needs conda",
    "kdoctor check --select host.scratch-space --format tsv": "needs the plugin (test_plugin_example.py)",
    "kdoctor scratch": "needs the plugin (test_plugin_example.py)",
    "kdoctor rollback --checklist ci/gpu-node.yaml --verify": "needs a package index",
    "kdoctor smoke --strategy data-parallel": "trains for minutes (make test-smoke)",
    "kdoctor smoke --tier standard": "trains for minutes (make test-smoke)",
    "kdoctor smoke multi-worker lost-worker": "trains for a minute (make test-smoke)",
    "kdoctor smoke --strategy parameter-server": "trains for a minute (make test-smoke)",
    "kubectl": "needs a cluster",
    "pipx install": "needs a package index",
    "python -m pip install": "needs a package index",
    "python -m venv /opt/kdoctor": "writes to /opt",
    "/opt/kdoctor/bin/python -m pip install": "needs a package index",
    "py-spy": "needs a job that runs",
    "scontrol": "needs Slurm",
    "srun": "needs Slurm",
    "systemctl": "needs systemd and root",
    "uv tool install": "needs a package index",
}
"""How a command begins that is not run, and why."""

ON_GPUS = ("kdoctor topology",)
"""How a command begins that needs GPUs; it runs on a simulated machine with eight."""

OF_TRAIN = "kdoctor check --model train:build --data train:data"
EXIT_CODES = {
    # A warning: the installed Keras has known defects.
    "kdoctor check --checklist cpu-smoke --no-smoke --format nagios": 1,
    # The default checklist fails without GPUs.
    "kdoctor check": 1,
    "kdoctor check && python train.py": 1,
    "kdoctor check --checklist one-gpu.yaml": 1,
    "kdoctor check --model jobs.train:build_model --data jobs.train:make_dataset --steps 8": 1,
    "kdoctor check --checklist two-weeks.yaml": 1,
    "kdoctor check --model train.py": 1,
    'kdoctor check --model "train.py --epochs 3"': 1,
    f"{OF_TRAIN} --restore /path/of/checkpoints": 1,
    "kdoctor check --loop train:loop --restore /path/of/checkpoints": 1,
    f"{OF_TRAIN} --fit-arguments train:arguments --restore /path/of/checkpoints": 1,
    "kdoctor check --no-smoke --snapshot node7.json": 1,
    "kdoctor check --checklist single-gpu-keras": 1,
    "kdoctor check --checklist single-gpu-keras --no-smoke": 1,
    # The imported output does not show what is installed.
    "kdoctor check --no-smoke --snapshot smi-q.txt": 3,
    "kdoctor check --no-smoke --snapshot imported.json": 3,
    # Without a directory /scratch, the check of the example is unknown.
    "kdoctor check --no-smoke --checklist site-node.yaml --plugin site_checks.scratch:PLUGIN": 3,
    # The work tree drops a check of main. (On checklist.md, it adds many.)
    "kdoctor checklist diff ci/gpu-node.yaml --base main --fail-on loosened": 1,
}
"""Commands whose exit code is not 0 on a machine without a GPU."""

TRAINS = re.compile(
    r"kdoctor smoke|kdoctor check .*--model|kdoctor check(?!.*--no-smoke) .*cpu-smoke|kdoctor checklist record"
)
"""Commands that train. Under other checklists, trainings need GPUs and are skipped."""


BY_EXTENSIONS = {
    "kdoctor diagnose": "kdoctor_diagnose",
    "kdoctor fleet": "kdoctor_fleet",
    "kdoctor lint": "kdoctor_lint",
    "kdoctor mcp": "kdoctor_mcp",
    "--import": "kdoctor_recordings",
    "--model": "kdoctor_job",
}
"""What an extension adds to the command line. Pages of the core use it, too."""


def commands_of(text: str) -> list[str]:
    """The commands of the page's shell blocks, in order."""
    blocks = re.findall(r"^```\s*sh\b[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines() if line.strip()]


def is_installed(command: str) -> bool:
    return all(importlib.util.find_spec(package) for part, package in BY_EXTENSIONS.items() if part in command)


def reason_not_run(command: str) -> str | None:
    return next((reason for start, reason in NOT_RUN.items() if command.startswith(start)), None)


def commands_by_page(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """The commands of the pages that have any, by path on the site."""
    found = {re.sub(r"^(doctor/\w+/)?docs/", "", location): commands_of(text) for location, text in texts.items()}
    return {name: commands for name, commands in sorted(found.items()) if commands}


PAGES = {
    name: [command for command in commands if is_installed(command)]
    for name, commands in commands_by_page(written_pages()).items()
}


def _trains(page: str) -> bool:
    run = [command for command in PAGES[page] if reason_not_run(command) is None]
    return any(TRAINS.search(command) for command in run)


TRAIN_SCRIPT = """\
import tensorflow as tf
from jobs.train import build_model as build, make_dataset as data

arguments = loop = lambda folder: {}
if __name__ == "__main__":
    with tf.distribute.MirroredStrategy().scope():
        model = build()
    model.fit(data())
"""
JOB = """\
import numpy as np
import tensorflow as tf


def build_model():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    return model


def make_dataset():
    numbers = np.random.default_rng(0)
    inputs, targets = numbers.random((64, 4), dtype="float32"), numbers.random((64, 1), dtype="float32")
    batches = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(16, drop_remainder=True)
    return batches.prefetch(tf.data.AUTOTUNE)
"""
CHECKLIST = untrained(
    "versions.tensorflow-installed", "host.memory", "host.disk", more="assumptions: {gpus: {count: 0}}\n"
)
NVIDIA_SMI = """\
==============NVSMI LOG==============

Driver Version                            : 570.158.01
CUDA Version                              : 12.8

Attached GPUs                             : 1
GPU 00000000:3B:00.0
    Product Name                          : NVIDIA L4
    GPU UUID                              : GPU-5a1c0b2e-0000-4000-8000-000000000001
"""
NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A git repository with the files that the pages assume."""
    examples = DOCS / "examples"
    for name in ("one-gpu.yaml", "site-node.yaml", "two-weeks.yaml"):
        shutil.copy(examples / name, tmp_path / name)
    for package, source in (("site_checks/scratch.py", examples / "scratch.py"), ("jobs/train.py", None)):
        path = tmp_path / package
        path.parent.mkdir()
        (path.parent / "__init__.py").touch()
        path.write_text(JOB if source is None else source.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "train.py").write_text(TRAIN_SCRIPT, encoding="utf-8")
    (tmp_path / "train.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    (tmp_path / "smi-q.txt").write_text(NVIDIA_SMI, encoding="utf-8")
    (tmp_path / "lspci.txt").write_text("3b:00.0 3D controller [0302]: NVIDIA Corporation AD104GL [L4] [10de:27b8]\n")
    for name in ("train.log", "rank0.log", "last-good.log"):
        (tmp_path / name).write_text("Could not load dynamic library 'libcudnn.so.8'; dlerror: no such file\n")
    (tmp_path / "dmesg.txt").write_text("[    0.000000] Linux version 6.1.0\n", encoding="utf-8")
    write(fleet_of(4), tmp_path / "reports")
    (tmp_path / "ci").mkdir()
    for name in ("old.yaml", "ci/gpu-node.yaml"):
        (tmp_path / name).write_text(CHECKLIST, encoding="utf-8")
    _prepare("git init -q -b main && git add ci && git -c user.name=a -c user.email=a@b.invalid commit -qm 1", tmp_path)
    for name in ("new.yaml", "ci/gpu-node.yaml"):
        (tmp_path / name).write_text(CHECKLIST.replace(", {id: host.disk}", ""), encoding="utf-8")
    return tmp_path


def _prepare(command: str, folder: Path) -> None:
    done = _run(command, folder)
    assert done.returncode == 0, (command, done.stdout, done.stderr)


def _run(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    if re.fullmatch(r"kdoctor [^$&|;<>~*'\"]+", command):  # nothing for a shell to do
        arguments = command.replace("/opt/job", sys.prefix).split()[1:]
        settings = {"KDOCTOR_NO_HISTORY": "0", "XDG_STATE_HOME": str(folder / "state"), **variables}
        return kdoctor(*arguments, cwd=folder, timeout_s=600, variables=settings)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = environ(PATH=path, KDOCTOR_NO_HISTORY="0", XDG_STATE_HOME=str(folder / "state"), **variables)
    command = command.replace("/opt/kdoctor/bin/", "").replace("/opt/job", sys.prefix)
    return captured(["/bin/sh", "-c", command], cwd=folder, env=given, timeout=600)


@pytest.mark.parametrize("name", tiered(PAGES, [page for page in PAGES if not _trains(page)]))
def test_commands_of_the_page_work(name: str, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    if name == "checklist.md":  # its first command writes this file
        (folder / "ci" / "gpu-node.yaml").unlink()
    if name == "rollback.md":
        _prepare("kdoctor checklist record ci/gpu-node.yaml", folder)
    for command in PAGES[name]:
        if reason_not_run(command) is not None:
            continue
        variables = {}
        if command.startswith(ON_GPUS):
            variables = collecting.environment("h100-nvswitch", tmp_path_factory.mktemp("machine"))
        if "--plugin site_checks" in command:  # the page exports it before
            variables["PYTHONPATH"] = str(folder)
        done = _run(command, folder, **variables)
        assert "Traceback" not in done.stderr, command
        assert done.returncode == EXIT_CODES.get(command, 0), (command, done.stdout, done.stderr)


def test_commands_of_generated_pages_name_checks_and_scenarios_that_exist() -> None:
    """They look for a failure that this machine does not have, so they are not run."""
    catalog = load_catalog()
    trained = {scenario.removeprefix("smoke.") for scenario in catalog.scenarios}
    pages = commands_by_page(generated_pages())
    assert any(name.startswith("failure-modes/") for name in pages)
    for command in (command for name, commands in pages.items() if name not in PAGES for command in commands):
        words = command.split()
        if words[:2] == ["kdoctor", "check"]:
            chosen = [after for option, after in itertools.pairwise(words) if option == "--select"]
            assert {name for names in chosen for name in names.split(",")} <= catalog.checks.keys(), command
        elif words[:2] == ["kdoctor", "smoke"]:
            named = itertools.takewhile(lambda word: not word.startswith("-"), words[2:])
            assert set(named) <= trained, command


def test_every_reason_is_of_a_command() -> None:
    commands = [command for page in PAGES.values() for command in page]
    reasons = filter(is_installed, NOT_RUN)
    assert [start for start in reasons if not any(command.startswith(start) for command in commands)] == []
    assert set(filter(is_installed, EXIT_CODES)) <= set(commands)


def test_commands_are_in_shell_blocks() -> None:
    """A command in a block of another kind is not collected, and so not tested."""
    strays = [
        f"{name}: {line.strip()}"
        for name, text in pages_by_location().items()
        if name != "docs/reference/cli.md"
        for line in text.splitlines()
        if re.match(r"    kdoctor \w", line)
    ]
    assert strays == []
