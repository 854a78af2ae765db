from dataclasses import replace

import pytest

from helpers.catalogs import gpu_check, host_check, small_catalog
from kdoctor.checklist.plan import SelectionError, plan, scenarios_to_run
from kdoctor.checklist.resolve import Checklist, ChecklistEntry, ScenarioEntry
from kdoctor.engine.judge import PlannedCheck
from kdoctor.model import Assumptions, GpuAssumption, Severity

NO_SMOKE = "smoke trainings are skipped (--no-smoke)"
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


def deselected(planned: tuple[PlannedCheck, ...]) -> dict[str, str | None]:
    return {entry.check.id: entry.deselected for entry in planned}


def test_entry_keeps_its_settings_and_prerequisite_its_defaults() -> None:
    by_id = {entry.check.id: entry for entry in plan(checklist(), CATALOG)}
    assert (by_id["gpu.free"].severity, by_id["gpu.free"].accept_unknown) == (Severity.INFO, "why not")
    assert (by_id["host.memory"].severity, by_id["host.memory"].accept_unknown) == (Severity.ERROR, None)


def test_check_selected_by_its_id_needs_no_checklist() -> None:
    planned = plan(checklist(), CATALOG, select=["host.unlisted"])
    assert [entry.check.id for entry in planned if not entry.deselected] == ["host.unlisted"]
    assert planned[-1].severity is CATALOG.checks["host.unlisted"].severity
    assert "host.unlisted" not in deselected(plan(checklist(), CATALOG, select=["host"]))
    together, apart = (plan(checklist(), CATALOG, select=patterns) for patterns in (["host,gpu"], ["host", "gpu"]))
    assert together == apart


def test_skip_excludes_even_a_prerequisite() -> None:
    planned = deselected(plan(checklist(), CATALOG, skip=["host.memory"]))
    assert "--skip host.memory" in (planned["host.memory"] or "")
    assert planned["host.shared-memory"] is None


def test_no_smoke_excludes_trainings() -> None:
    planned = plan(checklist(), CATALOG, smoke=False)
    assert deselected(planned)["smoke.baseline"] == NO_SMOKE
    assert scenarios_to_run(checklist(), planned) == ()
    asked_for = replace(CATALOG.scenarios["smoke.baseline"], needs_options="--model")
    catalog = replace(CATALOG, scenarios={asked_for.id: asked_for})
    assert deselected(plan(checklist(), catalog, smoke=False))["smoke.baseline"] is None


def test_empty_selection_is_refused() -> None:
    with pytest.raises(SelectionError) as caught:
        plan(checklist(), CATALOG, select=["smoke"], smoke=False)
    assert caught.value.hint
    assert caught.value.hint.startswith("--select smoke --no-smoke ")


def test_only_scenarios_of_planned_checks_run() -> None:
    everything = plan(checklist(), CATALOG)
    assert [entry.scenario.id for entry in scenarios_to_run(checklist(), everything)] == ["smoke.baseline"]
    assert scenarios_to_run(checklist(), plan(checklist(), CATALOG, select=["host"])) == ()


def test_check_of_all_trainings_needs_every_scenario() -> None:
    asked = checklist("host.memory", "smoke.all-trainings")
    alone = plan(asked, CATALOG, select=["smoke.all-trainings"])
    assert [entry.scenario.id for entry in scenarios_to_run(asked, alone)] == ["smoke.baseline"]
    assert scenarios_to_run(asked, plan(asked, CATALOG, select=["host"])) == ()
    left_out = plan(asked, CATALOG, smoke=False)
    assert deselected(left_out)["smoke.all-trainings"] == NO_SMOKE
    assert scenarios_to_run(asked, left_out) == ()
    no_gpus = checklist("host.memory", "smoke.all-trainings", assumptions=Assumptions(gpus=GpuAssumption(count=0)))
    assert scenarios_to_run(no_gpus, plan(no_gpus, CATALOG)) == ()


def test_gpu_checks_stay_planned_without_gpus() -> None:
    without = checklist(assumptions=Assumptions(gpus=GpuAssumption(count=0)))
    assert len(plan(without, CATALOG)) == 4
