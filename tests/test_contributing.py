"""The recipes of CONTRIBUTING.md, followed in a copy of the repository: the files that they name are enough."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.command import captured, environ
from helpers.tiers import every_second_day

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
COPIED = (
    "doctor",
    "checks",
    "checklists",
    "tests",
    "docs",
    "benchmarks",
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
)
STEP = re.compile(
    r"^`(?P<path>[\w./-]+)`(?:, (?P<where>at the end|after (?P<ticks>`+)(?P<line>[^\n]+?) ?(?P=ticks)))?:\n\n"
    r"```\w+\n(?P<text>.*?)^```",
    re.DOTALL | re.MULTILINE,
)
"""A file to write, or lines to insert into one."""

JOB = """\
schema: kdoctor/checklist/v1
name: job
version: 1
owner: ada
extends: cpu-smoke
checks:
  - {id: host.swap-unused}
"""


def follow(recipes: str, folder: Path) -> Iterator[str]:
    """Write what the recipes say, and yield the paths of new files."""
    for step in STEP.finditer(recipes):
        path = folder / step["path"]
        if step["where"] is None:
            assert not path.exists(), path
            path.parent.mkdir(exist_ok=True)
            path.write_text(step["text"], encoding="utf-8")
            yield step["path"]
            continue
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if step["line"]:
            place = next(number for number, line in enumerate(lines, 1) if line.startswith(step["line"]))
        else:
            place = len(lines)
        lines.insert(place, step["text"])
        path.write_text("".join(lines), encoding="utf-8")


class Copy:
    """A copy of the repository in which every recipe was followed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, folder / name)
        self.new_files = list(follow(TEXT, folder))
        (folder / "doctor/kdoctor_reboot/__init__.py").touch()

    def run(self, *argv: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
        folders = [self.folder / name for name in ("doctor", "checks", "checklists")]
        sources = os.pathsep.join(map(str, [*folders, path] if path else folders))
        return captured([sys.executable, *argv], cwd=self.folder, env=environ(PYTHONPATH=sources), timeout=240)

    def json(self, *argv: str) -> Any:
        done = self.run("-m", "kdoctor", *argv)
        assert "Traceback" not in done.stderr, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("contributor"))


def test_recipes_cover_each_kind(copy: Copy) -> None:
    folders = {Path(path).parent.as_posix() for path in copy.new_files}
    assert folders >= {
        "checks/kdoctor_checks/host",
        "doctor/kdoctor/probes",
        "doctor/kdoctor_target/scenarios",
        "doctor/kdoctor/report",
        "doctor/kdoctor_lint/rules",
        "doctor/kdoctor_reboot",
    }


def test_new_extension_brings_a_command_a_fact_and_a_check(copy: Copy, tmp_path: Path) -> None:
    """Only what the recipe adds to pyproject.toml is installed: a distribution with those entry points."""
    project = copy.folder / "pyproject.toml"
    lines, group = ["[metadata]"], ""
    for line in project.read_text(encoding="utf-8").splitlines():
        group = matched[1] if (matched := re.fullmatch(r'\[project\.entry-points\."(.+)"\]', line)) else group
        if "kdoctor_reboot" in line and "=" in line:
            lines += [f"[{group}]", line.replace('"', "")]
    info = tmp_path / "kdoctor_reboot-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kdoctor-reboot\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(lines[1:]))
    assert len(lines) == 1 + 2 * 3
    done = copy.run("-m", "kdoctor", "reboot", path=tmp_path)
    assert done.stdout.endswith("needed\n"), done.stderr
    assert "reboot" in copy.run("-m", "kdoctor", "--help", path=tmp_path).stdout
    assert "reboot" not in copy.run("-m", "kdoctor", "--help").stdout
    (copy.folder / "reboot.yaml").write_text(JOB.replace("host.swap-unused", "reboot.not-pending"))
    command = ("-m", "kdoctor", "check", "-c", "reboot.yaml", "--select", "reboot", "--no-smoke", "-f", "json")
    done = copy.run(*command, path=tmp_path)
    report = json.loads(done.stdout)
    assert {result["id"]: result["status"] for result in report["results"]}["reboot.not-pending"] in {"pass", "fail"}


def test_new_tests_pass(copy: Copy) -> None:
    tests = [path for path in copy.new_files if Path(path).name.startswith("test_")]
    done = copy.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout


@every_second_day(1)
def test_existing_tests_and_tools_accept_the_new_files(copy: Copy) -> None:
    assert copy.run("-m", "docs.generator").returncode == 0
    tests = [
        "tests/docs/test_pages.py",
        "tests/kdoctor/catalog/test_load.py",
        "tests/kdoctor_checks/test_collection.py",
        "tests/kdoctor_checks/test_ids.py",
        "tests/kdoctor_lint/test_rules.py",
        "tests/kdoctor_checks/evidence/test_groups.py",
    ]
    done = copy.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not tensorflow", *tests)
    assert done.returncode == 0, done.stdout[-3000:]
    done = copy.run("tests/style.py", *copy.new_files)
    assert done.returncode == 0, done.stdout[-3000:]
    done = copy.run("-m", "ruff", "check", "--no-cache", *(path for path in copy.new_files if path.endswith(".py")))
    assert done.returncode == 0, done.stdout


def test_new_check_is_explained_and_evaluated(copy: Copy) -> None:
    done = copy.run("-m", "kdoctor", "explain", "host.swap-unused")
    assert "https://docs.kernel.org/" in done.stdout
    (copy.folder / "job.yaml").write_text(JOB)
    report = copy.json("check", "--checklist", "job.yaml", "--select", "host.swap-unused", "--format", "json")
    assert {result["id"]: result["status"] for result in report["results"]}["host.swap-unused"] in {"pass", "fail"}


def test_new_probe_is_in_the_snapshot(copy: Copy) -> None:
    assert copy.json("snapshot", "--no-smoke")["facts"]["uptime"]["seconds"] > 0


def test_new_format_writes_the_report(copy: Copy) -> None:
    done = copy.run("-m", "kdoctor", "check", "--no-smoke", "-c", "cpu-smoke", "--select", "host", "--format", "tsv")
    assert done.returncode == 0, done.stderr
    assert "host.memory\tpass" in done.stdout


def test_new_lint_rule_finds_its_example(copy: Copy) -> None:
    (copy.folder / "train.py").write_text("import tensorflow as tf\ntf.config.run_functions_eagerly(True)\n")
    (finding,) = copy.json("lint", "train.py", "--all", "--format", "json")["findings"]
    assert (finding["rule"], finding["line"]) == ("lint.eager-functions", 2)


def test_new_failure_is_diagnosed(copy: Copy) -> None:
    closing = "srun: error: node1: task 0: Exited with exit code 1"
    (copy.folder / "train.log").write_text(f"Epoch 1/2\nValueError: unknown distribution strategy mirored\n{closing}\n")
    (cause,) = copy.json("diagnose", "train.log", "--format", "json")["causes"]
    assert (cause["id"], cause["values"], cause["first"]["line"]) == ("unknown_strategy_name", {"name": "mirored"}, 2)
    tests = ["tests/kdoctor/failures/test_patterns.py", "tests/kdoctor_diagnose/test_labelled.py"]
    done = copy.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", "rules or each_example")
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.tensorflow
def test_new_scenario_trains_and_is_judged(copy: Copy) -> None:
    report = copy.json("smoke", "wide-layer", "--replicas", "2", "--format", "json")
    assert {result["id"]: result["status"] for result in report["results"]}["smoke.wide-layer"] == "pass"
