from pathlib import Path

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from helpers.catalogs import small_catalog
from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.text import plain_text, resolved_text, scalar

TEAM = """\
schema: kdoctor/checklist/v1
name: team
version: 3
owner: ml-platform
assumptions:
  gpus: {at_least: 2}
checks:
  - {id: gpu.count-expected, accept_unknown: a container hides them}
  - id: host.memory
    parameters: {least_gib: 2, names: [a, b]}
  - id: gpu.free
without: {baseline: slow, edge-case: slow, failure-path: slow}
waivers:
  - {check: host.memory, reason: "known: yes", owner: ada, expires: 2030-12-31}
rollback: {decides: ada, at_once: [gpu, host]}
"""
OVER = """\
schema: kdoctor/checklist/v1
name: node
version: 1
extends: ./team.yaml
assumptions: {gpus: {count: 8}}
checks: [{id: host.memory, severity: info, parameters: {least_gib: 4}}]
without: {gpu.free: shared}
"""


@pytest.fixture
def node(tmp_path: Path) -> Path:
    (tmp_path / "team.yaml").write_text(TEAM)
    (tmp_path / "node.yaml").write_text(OVER)
    return tmp_path / "node.yaml"


def test_resolved_text_marks_overrides(node: Path, screen: SnapshotAssertion) -> None:
    text = resolved_text(load_checklist(str(node), small_catalog()))
    assert text.replace(f"{node.parent}/", "") == screen


@pytest.mark.parametrize("name", sorted(load_catalog().checklists))
def test_both_texts_are_equivalent_checklists(name: str, tmp_path: Path) -> None:
    catalog = load_catalog()
    checklist = load_checklist(name, catalog)
    for write in (resolved_text, plain_text):
        path = tmp_path / f"{write.__name__}.yaml"
        path.write_text(write(checklist))
        again = load_checklist(str(path), catalog)
        assert plain_text(again) == plain_text(checklist)
        assert sorted(entry.check.id for entry in again.entries) == sorted(
            entry.check.id for entry in checklist.entries
        )


@pytest.mark.parametrize(
    "value",
    [
        "yes", "3.10", "2030-01-01", "1:30", "", " a", "a: b", "# a", "é", 'a "b"', "~", "null", "a", "x/y", "-", "*a",
        1, 1.5, True, None, ["a", "no"], {"a b": {"c": ["on"]}},
    ],
)  # fmt: skip
def test_scalar_is_read_back_unchanged(value: object) -> None:
    assert yaml.safe_load(scalar(value)) == value
