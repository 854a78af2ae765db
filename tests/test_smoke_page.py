"""The example in docs/smoke.md is a working scenario."""

import json
import re
from pathlib import Path

import pytest

from helpers.command import kdoctor

TEXT = (Path(__file__).parents[1] / "docs" / "smoke.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    scenario, program = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    package = tmp_path / "ours"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "scenario.py").write_text(scenario, encoding="utf-8")
    (package / "program.py").write_text(program, encoding="utf-8")
    return tmp_path


PLUGINS = ("--plugin", "ours.scenario:SUM", "--plugin", "ours.scenario:sums_right")


def test_example_is_listed_and_explained(folder: Path) -> None:
    listed = kdoctor("list", "scenarios", *PLUGINS, PYTHONPATH=str(folder))
    assert "smoke.ours-sum (baseline, mirrored)" in listed.stdout
    explained = kdoctor("explain", "smoke.ours-sum", *PLUGINS, PYTHONPATH=str(folder))
    assert explained.returncode == 0
    assert "smoke.ours-sum" in explained.stdout
    assert "smoke.baseline" not in explained.stdout


@pytest.mark.tensorflow
def test_example_passes(folder: Path) -> None:
    done = kdoctor("smoke", "ours-sum", "--replicas", "2", "-f", "json", *PLUGINS, PYTHONPATH=str(folder))
    (result,) = [one for one in json.loads(done.stdout)["results"] if one["id"] == "smoke.ours-sum"]
    assert (result["status"], result["evidence"][0]["observed"]) == ("pass", "2 over 2 replicas")
