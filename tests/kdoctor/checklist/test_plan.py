from __future__ import annotations

import pytest

from helpers.catalogs import gpu_check, host_check, small_catalog
from kdoctor.checklist.plan import SelectionError, plan, scenarios_to_run
from kdoctor.checklist.resolve import Checklist, ChecklistEntry, ScenarioEntry
from kdoctor.engine.judge import PlannedCheck
from kdoctor.model import Assumptions, GpuAssumption, Severity

CATALOG = small_catalog(
    host_check("host.unlisted"), gpu_check("gpu.replicas", scenario=None), gpu_check("smoke.all-trainings")
)


def checklist(*ids: str, assumptions: Assumptions | None = None) -> Checklist:
    entries = tuple(
        ChecklistEntry(check=CATALOG.checks[check_id], severity=Severity.INFO, accept_unknown="why not")
        for check_id in ids or ("gpu.free", "host.shared-memory", "smoke.baseline")
    )
    scenarios = (ScenarioEntry(scenario=CATALOG.scenarios["smoke.baseline"], replicas=2, expect="it trains"),)
    return Checklist(
        name="job",
        version=1,
        owner="ada",
        source="here",
        assumptions=assumptions or Assumptions(),
        entries=entries,
        scenarios=scenarios,
    )


def told(planned: tuple[PlannedCheck, ...]) -> dict[str, str | None]:
    return {entry.check.id: entry.deselected for entry in planned}


def test_everything_is_planned_with_prerequisites_first() -> None:
    planned = plan(checklist(), CATALOG)
    assert told(planned) == {
        "gpu.free": None,
        "host.memory": None,
        "host.shared-memory": None,
        "smoke.baseline": None,
    }
    assert list(told(planned)) == ["gpu.free", "host.memory", "host.shared-memory", "smoke.baseline"]


def test_an_entry_keeps_what_the_checklist_says_and_a_prerequisite_its_own() -> None:
    by_id = {entry.check.id: entry for entry in plan(checklist(), CATALOG)}
    assert (by_id["gpu.free"].severity, by_id["gpu.free"].accept_unknown) == (Severity.INFO, "why not")
    assert (by_id["host.memory"].severity, by_id["host.memory"].accept_unknown) == (Severity.ERROR, None)


@pytest.mark.parametrize("pattern", ["host.shared-memory", "host.sh*", "*shared*"])
def test_select_brings_prerequisites_along(pattern: str) -> None:
    not_selected = f"not selected (--select {pattern})"
    assert told(plan(checklist(), CATALOG, select=[pattern])) == {
        "gpu.free": not_selected,
        "host.memory": None,
        "host.shared-memory": None,
        "smoke.baseline": not_selected,
    }


def test_select_takes_several_patterns_and_families() -> None:
    planned = told(plan(checklist(), CATALOG, select=["gpu", "smoke.*"]))
    assert planned["gpu.free"] is None
    assert planned["smoke.baseline"] is None
    assert planned["host.memory"] == "not selected (--select gpu --select smoke.*)"


def test_skip_leaves_out_even_a_prerequisite() -> None:
    planned = told(plan(checklist(), CATALOG, skip=["host.memory"]))
    assert planned["host.memory"] == "left out by --skip host.memory"
    assert planned["host.shared-memory"] is None


def test_no_smoke_leaves_the_trainings_out() -> None:
    planned = plan(checklist(), CATALOG, smoke=False)
    assert told(planned)["smoke.baseline"] == "trainings were left out (--no-smoke)"
    assert scenarios_to_run(checklist(), planned) == ()


@pytest.mark.parametrize(
    ("option", "pattern", "message"),
    [
        ("select", "gpu.fre", "--select gpu.fre: this matches no check; did you mean 'gpu.free'?"),
        ("skip", "smok", "--skip smok: this matches no check; did you mean 'smoke'?"),
        ("select", "", "--select : this matches no check"),
        ("select", "host.unlisted", "--select host.unlisted: checklist job does not ask for host.unlisted"),
        ("skip", "versions", "--skip versions: checklist job does not ask for versions.python-supported"),
    ],
)
def test_a_pattern_that_matches_nothing(option: str, pattern: str, message: str) -> None:
    select, skip = ([pattern], []) if option == "select" else ([], [pattern])
    with pytest.raises(SelectionError) as caught:
        plan(checklist(), CATALOG, select=select, skip=skip)
    assert caught.value.message == message


def test_an_empty_selection_is_refused() -> None:
    with pytest.raises(SelectionError, match="nothing is left to check") as caught:
        plan(checklist(), CATALOG, select=["smoke"], smoke=False)
    assert caught.value.hint
    assert caught.value.hint.startswith("--select smoke --no-smoke together leave no check")


def test_only_awaited_scenarios_are_run() -> None:
    everything = plan(checklist(), CATALOG)
    assert [entry.scenario.id for entry in scenarios_to_run(checklist(), everything)] == ["smoke.baseline"]
    assert scenarios_to_run(checklist(), plan(checklist(), CATALOG, select=["host"])) == ()


def test_a_check_of_all_trainings_waits_for_every_scenario_and_is_left_out_without_them() -> None:
    asked = checklist("host.memory", "smoke.all-trainings")
    alone = plan(asked, CATALOG, select=["smoke.all-trainings"])
    assert [entry.scenario.id for entry in scenarios_to_run(asked, alone)] == ["smoke.baseline"]
    assert scenarios_to_run(asked, plan(asked, CATALOG, select=["host"])) == ()
    left_out = plan(asked, CATALOG, smoke=False)
    assert told(left_out)["smoke.all-trainings"] == "trainings were left out (--no-smoke)"
    assert scenarios_to_run(asked, left_out) == ()
    no_gpus = checklist("host.memory", "smoke.all-trainings", assumptions=Assumptions(gpus=GpuAssumption(count=0)))
    assert scenarios_to_run(no_gpus, plan(no_gpus, CATALOG)) == ()


def test_assumptions_reach_the_rules_of_gpu_checks() -> None:
    without = checklist(assumptions=Assumptions(gpus=GpuAssumption(count=0)))
    assert len(plan(without, CATALOG)) == 4
