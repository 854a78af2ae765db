"""The removal test: without any one extension, everything else works."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers.removal import EXTENSIONS, copy_without, install
from helpers.tiers import TODAY

DRAWN = [EXTENSIONS[(2 * TODAY + offset) % len(EXTENSIONS)] for offset in range(2)]
"""The two of today, so that each is tried every few days."""
FURTHER = DRAWN[TODAY // len(EXTENSIONS) % 2]
"""The one of them for which the site is built and everything is imported."""


@dataclass(frozen=True)
class Rest:
    """The project without one extension, and an environment with it."""

    extension: str
    project: Path
    python: Path

    def run(self, *arguments: str) -> str:
        """The output of its interpreter, which must succeed."""
        command: list[str | Path] = [self.python, *arguments]
        done = subprocess.run(command, cwd=self.project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{arguments}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout


@pytest.fixture(scope="module", params=EXTENSIONS)
def rest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Rest:
    name: str = request.param
    if name not in DRAWN and not os.environ.get("KDOCTOR_REMOVAL"):
        pytest.skip("drawn on another day; make test-removal tries all")
    folder = tmp_path_factory.mktemp(name)
    project = copy_without(name, folder / "project")
    return Rest(name, project, install(project, folder / "environment"))


def skip_unless_further(rest: Rest) -> None:
    if rest.extension != FURTHER and not os.environ.get("KDOCTOR_REMOVAL"):
        pytest.skip("one extension a day; make test-removal tries all")


def test_commands_do_not_name_it(rest: Rest) -> None:
    helped = rest.run("-m", "kdoctor", "--help").splitlines()
    commands = [line.split()[1] for line in helped if line.startswith("│ ") and len(line.split()) > 1]
    assert "check" in commands
    assert rest.extension not in commands
    assert json.loads(rest.run("-m", "kdoctor", "list", "--format", "json"))["checks"]
    rest.run("-m", "kdoctor", "checklist", "validate", "multi-gpu-keras", "cpu-smoke", "single-gpu-keras")


def test_contracts_hold(rest: Rest) -> None:
    rest.run("-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())")


IMPORTS = """
import ast, importlib, pathlib, sys
sys.path[:0] = ["doctor", "checks", "checklists", "tests"]  # as the tests have it
from helpers.extensions import missing_extensions
wanted = set()
files = (path for folder in ("doctor", "checks", "tests") for path in pathlib.Path(folder).rglob("*.py"))
for path in files:
    if path.parts[0] == "tests" and missing_extensions(path):
        continue
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and not node.level:
            wanted |= {(node.module, each.name) for each in node.names}
        elif isinstance(node, ast.Import):
            wanted |= {(each.name, None) for each in node.names}
for name, part in sorted(wanted, key=str):
    if name.startswith(("kdoctor", "helpers")):
        module = importlib.import_module(name)
        assert part is None or hasattr(module, part) or importlib.import_module(f"{name}.{part}")
"""
"""Imports whatever a file imports from the project, anywhere in it. Tests that need the extension are left out."""


def test_every_import_of_the_rest_works(rest: Rest) -> None:
    skip_unless_further(rest)
    rest.run("-c", IMPORTS)


@pytest.mark.skipif(os.environ.get("KDOCTOR_REMOVAL") != "whole", reason="make test-removal: an hour")
def test_everything_else_passes(rest: Rest) -> None:
    rest.run("-m", "pytest", "-q", "-p", "no:randomly", "--numprocesses", "auto", "tests")


def test_site_has_no_dead_link(rest: Rest) -> None:
    skip_unless_further(rest)
    rest.run("-m", "mkdocs", "build", "--strict", "--quiet")
