from dataclasses import replace

import pytest

from helpers.facts import environment
from helpers.judging import TODAY
from kdoctor.catalog.load import Catalog
from kdoctor.checklist.for_scenarios import checklist_of, choose_scenarios
from kdoctor.checklist.gpus import with_gpus
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.plan import plan, scenarios_to_run
from kdoctor.checklist.policy import decisions
from kdoctor.engine.judge import judge
from kdoctor.engine.report import Result
from kdoctor.engine.verdict import conclude
from kdoctor.facts import FactGroup, Gpus, PciDevices
from kdoctor.model import Severity, Status
from kdoctor.run.plan import with_matrix
from kdoctor.testing import fact_table, healthy
from kdoctor_recordings.facts import Diagnostics, ImportedLines

SHIPPED = ("cpu-smoke", "multi-gpu-keras", "single-gpu-keras")
OF_FLEETS = "fleet"
"""Judges the reports of many nodes, not this machine."""
OF_EXTENSIONS = (OF_FLEETS, "multi-gpu-jax")
COMPLETE = ("cpu-smoke", "multi-gpu-keras")
"""Those with every check."""
ONLY_SMOKE = {"smoke.silent-features"}
"""Quick, but about features that a job may not use. With --model, job.clipping and job.random-layers are about it."""


def test_catalog_has_the_shipped_checklists(catalog: Catalog) -> None:
    assert set(catalog.checklists) == {*SHIPPED, *OF_EXTENSIONS}


@pytest.mark.parametrize("name", [*SHIPPED, "multi-gpu-jax"])
def test_shipped_checklist_is_valid_and_has_an_owner(catalog: Catalog, name: str) -> None:
    checklist = load_checklist(name, catalog)
    assert checklist.name == name
    assert checklist.owner == "kdoctor"
    assert checklist.rollback


OF_JAX = "versions.jax-installed"
"""Asked for by the checklists of JAX, in place of the check of TensorFlow."""


@pytest.mark.parametrize("name", COMPLETE)
def test_shipped_checklist_has_every_check_except_those_of_assumptions(catalog: Catalog, name: str) -> None:
    checklist = load_checklist(name, catalog)
    asked = {entry.check.id for entry in checklist.entries}
    assumed = {
        "gpu.model-expected", "versions.packages-expected", "versions.runtime-expected",
        "environment.variables-expected",
    }  # fmt: skip
    elsewhere = {check.id for check in catalog.checks.values() if check.family in ("cluster", "watch")} | {OF_JAX}
    assert asked == set(catalog.checks) - assumed - elsewhere - _of_thorough_tiers(catalog)


def test_checklist_of_fleets_has_every_check_over_nodes_and_no_other(catalog: Catalog) -> None:
    checklist = load_checklist(OF_FLEETS, catalog)
    asked = {entry.check.id for entry in checklist.entries}
    assert asked == {check.id for check in catalog.checks.values() if check.family == "cluster"}
    assert not checklist.scenarios


def _of_thorough_tiers(catalog: Catalog) -> set[str]:
    """Checks of scenarios that only `kdoctor smoke` trains, and of the user's model."""
    thorough = {scenario.id for scenario in catalog.scenarios.values() if scenario.tier != "quick"} | ONLY_SMOKE
    return {check.id for check in catalog.checks.values() if check.scenario in thorough}


def test_full_tier_has_every_check_of_a_scenario(catalog: Catalog) -> None:
    every = checklist_of(catalog, choose_scenarios(catalog, tier="full"), "full")
    of_jobs = {scenario.id for scenario in catalog.scenarios.values() if scenario.tier == "job"}
    assert {entry.check.id for entry in every.entries} == {
        check.id for check in catalog.checks.values() if check.judges_trainings and check.scenario not in of_jobs
    }


@pytest.mark.parametrize("name", COMPLETE)
def test_shipped_checklist_trains_every_quick_scenario(catalog: Catalog, name: str) -> None:
    checklist = load_checklist(name, catalog)
    running = scenarios_to_run(checklist, plan(checklist, catalog))
    quick = {scenario.id for scenario in catalog.scenarios.values() if scenario.tier == "quick"}
    assert {entry.scenario.id for entry in running} == quick - ONLY_SMOKE


def test_cpu_smoke_expects_no_gpu_and_trains_two_replicas(catalog: Catalog) -> None:
    checklist = load_checklist("cpu-smoke", catalog)
    assert not checklist.assumptions.expects_gpus
    assert {entry.replicas for entry in checklist.scenarios} == {2}


def test_multi_gpu_keras_expects_gpus_and_trains_on_all(catalog: Catalog) -> None:
    checklist = load_checklist("multi-gpu-keras", catalog)
    assert checklist.assumptions.gpus
    assert checklist.assumptions.gpus.at_least == 2
    assert {entry.replicas for entry in checklist.scenarios} == {"gpus"}


@pytest.mark.parametrize("name", COMPLETE)
def test_starved_replica_is_a_warning(catalog: Catalog, name: str) -> None:
    severities = {entry.check.id: entry.severity.value for entry in load_checklist(name, catalog).entries}
    assert severities["smoke.starved-replica"] == "warning"


@pytest.mark.parametrize("name", SHIPPED)
def test_policy_covers_every_builtin_check(catalog: Catalog, name: str) -> None:
    failures = [
        Result(id=check.id, family=check.family, title=check.title, status=Status.FAIL, severity=check.severity)
        for check in catalog.checks.values()
    ]
    decided = decisions(failures, load_checklist(name, catalog))
    assert sum(len(decision.checks) for decision in decided) == len(catalog.checks)
    assert [criterion for decision in decided for criterion in decision.criteria if ": " not in criterion] == []
    assert {decision.action for decision in decided} == {"roll back at once", "fix forward"}


# --- one GPU -----------------------------------------------------------------------------------------------------


def one_gpu() -> tuple[FactGroup, ...]:
    """The healthy node with its first GPU only."""
    gpus, pci = healthy(Gpus), healthy(PciDevices)
    only = gpus.devices[0]
    return (
        replace(gpus, count=1, devices=(only,), pairs=()),
        replace(pci, devices=tuple(item for item in pci.devices if item not in pci.gpus or item.bus_id == only.bus_id)),
    )


ONLY_IMPORTED = (Diagnostics, ImportedLines)
"""Groups that no probe of this machine reads."""


def judged(catalog: Catalog, name: str, *facts: FactGroup, count: int | None = None) -> dict[str, Result]:
    """The results without trainings on the healthy node with these facts; with ``--gpus``, if a count is given."""
    checklist = load_checklist(name, catalog)
    checklist = checklist if count is None else with_gpus(checklist, catalog, count)
    checks = plan(checklist, catalog, smoke=False)
    node = [healthy(group) for group in catalog.fact_groups.values() if group not in ONLY_IMPORTED]
    results = judge(checks, fact_table(*node, *facts), with_matrix(checklist.rules(today=TODAY), checks))
    return {result.id: result for result in results}


def test_one_gpu_passes_its_checklist(catalog: Catalog) -> None:
    results = judged(catalog, "single-gpu-keras", *one_gpu())
    assert conclude(results.values()).exit_code == 0
    assert results["gpu.count-expected"].evidence[0].observed.startswith("1 ")


def test_one_visible_gpu_of_eight_passes_the_checklist_of_one(catalog: Catalog) -> None:
    first = environment(CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID")
    assert conclude(judged(catalog, "single-gpu-keras", first).values()).exit_code == 0
    results = judged(catalog, "single-gpu-keras")
    assert [result.id for result in results.values() if result.status is Status.FAIL] == ["gpu.count-expected"]


def test_one_gpu_fails_the_default_checklist_and_passes_with_its_fix(catalog: Catalog) -> None:
    results = judged(catalog, "multi-gpu-keras", *one_gpu())
    failed = [result for result in results.values() if result.severity is Severity.ERROR]
    (finding,) = (item.finding for result in failed for item in result.findings)
    assert finding.remedy.commands == ("kdoctor check --gpus 1",)
    assert conclude(judged(catalog, "multi-gpu-keras", *one_gpu(), count=1).values()).exit_code == 0


def test_checklist_of_one_gpu_leaves_out_what_the_comparison_of_gpus_needs(catalog: Catalog) -> None:
    checklist = load_checklist("single-gpu-keras", catalog)
    asked = {entry.check.id for entry in checklist.entries}
    assert asked.isdisjoint(checklist.without)
    assert {"topology.fabric", "topology.fabric-manager", "topology.numa", "smoke.baseline"} <= asked
    assert {entry.replicas for entry in checklist.scenarios} == {"gpus"}
