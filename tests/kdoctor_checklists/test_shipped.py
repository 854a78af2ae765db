from __future__ import annotations

import pytest

from kdoctor.checklist.for_scenarios import checklist_of, choose_scenarios
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.plan import plan, scenarios_to_run
from kdoctor.engine.catalog import Catalog, load_catalog
from kdoctor.smoke.own_model import OWN_MODEL

SHIPPED = ("cpu-smoke", "multi-gpu-keras")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def test_catalog_has_the_shipped_checklists(catalog: Catalog) -> None:
    assert tuple(sorted(catalog.checklists)) == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_checklist_is_valid_and_has_an_owner(catalog: Catalog, name: str) -> None:
    checklist = load_checklist(name, catalog)
    assert checklist.name == name
    assert checklist.owner == "kdoctor"
    assert checklist.rollback


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_checklist_has_every_check_except_those_of_assumptions(catalog: Catalog, name: str) -> None:
    checklist = load_checklist(name, catalog)
    asked = {entry.check.id for entry in checklist.entries}
    assumed = {
        "gpu.model-expected", "versions.packages-expected", "versions.runtime-expected",
        "environment.variables-expected",
    }  # fmt: skip
    assert asked == set(catalog.checks) - assumed - _of_thorough_tiers(catalog)


def _of_thorough_tiers(catalog: Catalog) -> set[str]:
    """Checks of scenarios that only `kdoctor smoke --tier standard|full` trains, and of the user's model."""
    thorough = {scenario.id for scenario in catalog.scenarios.values() if scenario.tier != "quick"}
    return {check.id for check in catalog.checks.values() if check.scenario in thorough}


def test_full_tier_has_every_check_of_a_scenario(catalog: Catalog) -> None:
    every = checklist_of(catalog, choose_scenarios(catalog, tier="full"), "full")
    assert {entry.check.id for entry in every.entries} == {
        check.id for check in catalog.checks.values() if check.judges_trainings and check.scenario != OWN_MODEL
    }


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_checklist_trains_every_quick_scenario(catalog: Catalog, name: str) -> None:
    checklist = load_checklist(name, catalog)
    running = scenarios_to_run(checklist, plan(checklist, catalog))
    quick = {scenario.id for scenario in catalog.scenarios.values() if scenario.tier == "quick"}
    assert {entry.scenario.id for entry in running} == quick


def test_cpu_smoke_expects_no_gpu_and_trains_two_replicas(catalog: Catalog) -> None:
    checklist = load_checklist("cpu-smoke", catalog)
    assert not checklist.assumptions.expects_gpus
    assert {entry.replicas for entry in checklist.scenarios} == {2}


def test_multi_gpu_keras_expects_gpus_and_trains_on_all(catalog: Catalog) -> None:
    checklist = load_checklist("multi-gpu-keras", catalog)
    assert checklist.assumptions.gpus
    assert checklist.assumptions.gpus.at_least == 2
    assert {entry.replicas for entry in checklist.scenarios} == {"gpus"}


@pytest.mark.parametrize("name", SHIPPED)
def test_starved_replica_is_a_warning(catalog: Catalog, name: str) -> None:
    severities = {entry.check.id: entry.severity.value for entry in load_checklist(name, catalog).entries}
    assert severities["smoke.starved-replica"] == "warning"
