import json
from collections.abc import Iterator

import jsonschema
import pytest
from syrupy.assertion import SnapshotAssertion

from helpers.command import kdoctor_here
from kdoctor.catalog.load import load_catalog
from kdoctor.check import check
from kdoctor.cli.explain import Known, explain_check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Severity


def test_explain_lists_detected_failures() -> None:
    known = Known()
    checks = known.catalog.checks
    assert "\n  tf2161_runpath\n" in explain_check(checks["versions.libraries-searched"], known)
    assert "tf2161_runpath" not in explain_check(checks["versions.other-conflicts"], known)


def test_list_contains_every_check() -> None:
    listed = kdoctor_here("list").stdout
    assert [name for name in load_catalog().checks if f"  {name} (" not in listed] == []


def test_list_checklists_contains_every_name() -> None:
    listed = kdoctor_here("list", "checklists").stdout.splitlines()
    assert [name for name in load_catalog().checklists if f"  {name}" not in listed] == []


@check("gpu.free", severity=Severity.WARNING, requires=["driver.loaded"], needs_gpus=True)
def free(gpus: Gpus, *, most_bytes: int = 0) -> Iterator[Outcome]:
    """GPUs are free.

    Why: another process takes memory that the training needs.
    Remedy: end the other process.
    Source: https://example.org/memory
    Failure modes: busy_gpu
    """
    yield from ()


def test_explain_prints_every_section(screen: SnapshotAssertion) -> None:
    assert explain_check(free, Known()) == screen


@pytest.mark.parametrize("name", ["smoke.lost-worker", "smoke.baseline"])
def test_explain_shows_check_and_scenario_of_the_same_name(name: str) -> None:
    explained = kdoctor_here("explain", name).stdout
    assert f"{name} (" in explained
    assert f"Scenario {name}, version" in explained


def test_json_list_matches_its_schema() -> None:
    catalog = load_catalog()
    listed = json.loads(kdoctor_here("list", "--format", "json").stdout)
    jsonschema.validate(listed, json.loads(kdoctor_here("schema", "list").stdout))
    assert [item["id"] for item in listed["checks"]] == list(catalog.checks)
    assert [item["id"] for item in listed["scenarios"]] == list(catalog.scenarios)
    assert listed["checklists"] == list(catalog.checklists)
    baseline = next(item for item in listed["checks"] if item["id"] == "smoke.baseline")
    assert {"name": "tolerance", "type": "float", "default": 0.0001} in baseline["parameters"]


def test_json_list_of_one_kind_has_only_that() -> None:
    listed = json.loads(kdoctor_here("list", "checklists", "-f", "json").stdout)
    assert (listed["checks"], listed["scenarios"], bool(listed["checklists"])) == (None, None, True)
