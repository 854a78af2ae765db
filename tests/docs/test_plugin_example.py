"""The example of docs/writing-plugins.md works: its check, its checklist and its tests."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.command import environ, kdoctor
from kdoctor import model

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files as the page says to save them."""
    (tmp_path / "site_checks").mkdir()
    (tmp_path / "site_checks" / "__init__.py").touch()
    shutil.copy(EXAMPLES / "scratch.py", tmp_path / "site_checks")
    shutil.copy(EXAMPLES / "site-node.yaml", tmp_path)
    shutil.copy(EXAMPLES / "test_scratch.py", tmp_path)
    return tmp_path


@pytest.mark.parametrize(("scratch", "status"), [(True, "pass"), (False, "unknown")])
def test_example_check_reads_the_machine(folder: Path, tmp_path: Path, scratch: bool, status: str) -> None:  # noqa: FBT001
    root = tmp_path / "root"
    root.mkdir()
    if scratch:
        (root / "scratch").mkdir()
    done = kdoctor(
        "check", "--select", "host.scratch-space", "-f", "json", "-c", "site-node.yaml",
        "--plugin", "site_checks.scratch:PLUGIN",
        cwd=folder, PYTHONPATH=str(folder), KDOCTOR_ROOT=str(root),
    )  # fmt: skip
    (result,) = [one for one in json.loads(done.stdout)["results"] if one["id"] == "host.scratch-space"]
    if scratch and result["status"] == "fail":  # this machine has less than 50 GiB
        status = "fail"
    assert result["status"] == status


def test_example_tests_pass(folder: Path) -> None:
    pytest.importorskip("kdoctor.testing", exc_type=ModuleNotFoundError)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_scratch.py"],
        check=False, capture_output=True, text=True, cwd=folder, env=environ(PYTHONPATH=str(folder)),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_example_finding_has_existing_fields() -> None:
    page = (EXAMPLES.parent / "writing-plugins.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(Finding\(.*?)^```", page, re.DOTALL | re.MULTILINE)
    finding = eval(code, dict(vars(model)))  # noqa: S307 - the example of our page
    assert isinstance(finding, model.Finding)
    assert (len(finding.headline), len(finding.remedy.look)) == (len("read-only"), 1)
