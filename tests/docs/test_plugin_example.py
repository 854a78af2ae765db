"""The example of docs/writing-plugins.md works: its check, its checklist and its tests."""

import json
import os
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
    page = (EXAMPLES.parent / "writing-plugins.md").read_text(encoding="utf-8")
    for saved, example in re.findall(r'title="(.+?)"\}?\n--8<-- "docs/examples/(.+?)"', page):
        shutil.copy(EXAMPLES / example, tmp_path / saved)
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


def test_installed_example_adds_a_check_a_format_and_a_command(folder: Path) -> None:
    """Installed is what pip makes of the page's pyproject.toml: the package, and its entry points."""
    project = (folder / "pyproject.toml").read_text(encoding="utf-8")
    groups = re.findall(r'^\[project\.entry-points\."(.+)"\]\n(.+) = "(.+)"$', project, re.MULTILINE)
    assert len(groups) == project.count("entry-points")
    info = folder / "site_checks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: site-checks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("".join(f"[{group}]\n{name} = {value}\n" for group, name, value in groups))

    def run(command: str) -> str:
        done = kdoctor(*command.split(), cwd=folder, PYTHONPATH=str(folder))
        assert not done.stderr
        return done.stdout

    table = run("check --select host.scratch-space --format tsv")
    assert re.search(r"^host\.scratch-space\t(pass|fail|unknown)$", table, re.MULTILINE)
    assert "largest files of the scratch directory" in run("--help")
    assert "--largest" in run("scratch --help")
    run("scratch --largest 1")
    assert "host.scratch-space (error)" in run("explain host.scratch-space")
    command = folder / "site_checks/command.py"
    command.write_text(command.read_text(encoding="utf-8").replace("files.sort", "files.sorted"))
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    assert "bug in the plugin site_checks (command.py:13)." in kdoctor("scratch", cwd=folder, PYTHONPATH=path).stderr
    entries = (info / "entry_points.txt").read_text()
    for attribute, exit_code in (("APP", 0), ("Path", 2)):
        (info / "entry_points.txt").write_text(entries.replace("command:SCRATCH", f"command:{attribute}"))
        with command.open("a", encoding="utf-8") as file:
            file.write("APP = typer.Typer(help='Mine.')\nAPP.command()(scratch)\n")
        assert kdoctor("scratch", "--help", cwd=folder, PYTHONPATH=path).returncode == exit_code
    (info / "entry_points.txt").write_text(entries)
    command.write_text(command.read_text(encoding="utf-8").replace("def scratch", "def other").partition("APP")[0])
    missing = kdoctor("scratch", cwd=folder, PYTHONPATH=path)
    assert (missing.returncode, "site_checks.command:scratch" in missing.stderr) == (2, True)
    for code, exit_code, named in (("return 3", 2, "site-checks (kdoctor.formats: tsv)"), ("1 / 0", 4, "(tsv.py:2)")):
        (folder / "site_checks/tsv.py").write_text(f"def render(report, canvas):\n    {code}\n")
        failed = kdoctor("check", "--no-smoke", "-f", "tsv", cwd=folder, PYTHONPATH=path)
        assert (failed.returncode, named in failed.stderr) == (exit_code, True)


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
    (kinds,) = re.findall(r"^\| `Remedy.configure`, (.*?) or `inspect` \|", page, re.MULTILINE)
    for kind in ("configure", *re.findall(r"`(\w+)`", kinds), "inspect"):
        assert getattr(model.Remedy, kind)("Look.", look=("ls",)).look == ("ls",)
