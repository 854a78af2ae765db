import pytest

from helpers.cases import cases
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


def test_prerequisites_are_planned_first() -> None:
    planned = plan(checklist(), CATALOG)
    assert deselected(planned) == {
        "gpu.free": None,
        "host.memory": None,
        "host.shared-memory": None,
        "smoke.baseline": None,
    }
    assert list(deselected(planned)) == ["gpu.free", "host.memory", "host.shared-memory", "smoke.baseline"]


def test_entry_keeps_its_settings_and_prerequisite_its_defaults() -> None:
    by_id = {entry.check.id: entry for entry in plan(checklist(), CATALOG)}
    assert (by_id["gpu.free"].severity, by_id["gpu.free"].accept_unknown) == (Severity.INFO, "why not")
    assert (by_id["host.memory"].severity, by_id["host.memory"].accept_unknown) == (Severity.ERROR, None)


@pytest.mark.parametrize("pattern", ["host.shared-memory", "host.sh*", "*shared*"])
def test_select_includes_prerequisites(pattern: str) -> None:
    not_selected = f"not selected (--select {pattern})"
    assert deselected(plan(checklist(), CATALOG, select=[pattern])) == {
        "gpu.free": not_selected,
        "host.memory": None,
        "host.shared-memory": None,
        "smoke.baseline": not_selected,
    }


def test_select_takes_several_patterns_and_families() -> None:
    planned = deselected(plan(checklist(), CATALOG, select=["gpu", "smoke.*"]))
    assert planned["gpu.free"] is None
    assert planned["smoke.baseline"] is None
    assert planned["host.memory"] == "not selected (--select gpu --select smoke.*)"


def test_check_selected_by_its_id_needs_no_checklist() -> None:
    planned = plan(checklist(), CATALOG, select=["host.unlisted"])
    assert [entry.check.id for entry in planned if not entry.deselected] == ["host.unlisted"]
    assert planned[-1].severity is CATALOG.checks["host.unlisted"].severity
    assert "host.unlisted" not in deselected(plan(checklist(), CATALOG, select=["host"]))


def test_skip_excludes_even_a_prerequisite() -> None:
    planned = deselected(plan(checklist(), CATALOG, skip=["host.memory"]))
    assert "--skip host.memory" in (planned["host.memory"] or "")
    assert planned["host.shared-memory"] is None


def test_no_smoke_excludes_trainings() -> None:
    planned = plan(checklist(), CATALOG, smoke=False)
    assert deselected(planned)["smoke.baseline"] == NO_SMOKE
    assert scenarios_to_run(checklist(), planned) == ()


@cases(
    ("select", "gpu.fre", "'gpu.free'"),
    ("skip", "smok", "'smoke'"),
    ("select", "hosts", "'host'"),
    ("select", "", "no check"),
    ("select", "host.unl*", "checklist job"),
    ("select", "smoke.all-trainings", "checklist job"),
    ("skip", "versions", "versions.python-supported"),
)
def test_pattern_without_a_match_is_refused(option: str, pattern: str, named: str) -> None:
    select, skip = ([pattern], []) if option == "select" else ([], [pattern])
    with pytest.raises(SelectionError) as caught:
        plan(checklist(), CATALOG, select=select, skip=skip)
    assert caught.value.message.startswith(f"--{option} {pattern}: ")
    assert named in caught.value.message


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
