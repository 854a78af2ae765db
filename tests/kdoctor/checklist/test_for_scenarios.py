from dataclasses import replace

import pytest

from helpers.cases import cases
from kdoctor.catalog.load import Catalog
from kdoctor.checklist.for_scenarios import checklist_of, choose_scenarios, typical_seconds, with_scenario
from kdoctor.checklist.plan import plan, scenarios_to_run
from kdoctor.errors import UsageError
from kdoctor.smoke.definition import HOT_S

QUICK = ("smoke.baseline", "smoke.uneven-final-batch", "smoke.model-outside-scope", "smoke.silent-features")


def ids(catalog: Catalog, *names: str, strategy: str | None = None, tier: str | None = None) -> tuple[str, ...]:
    return tuple(scenario.id for scenario in choose_scenarios(catalog, names, strategy=strategy, tier=tier))


def test_default_is_the_quick_tier(catalog: Catalog) -> None:
    assert ids(catalog) == ids(catalog, tier="quick") == QUICK


def test_each_tier_includes_the_smaller_ones(catalog: Catalog) -> None:
    quick, standard, full = (set(ids(catalog, tier=tier)) for tier in ("quick", "standard", "full"))
    assert quick < standard < full == {name for name, one in catalog.scenarios.items() if one.tier != "job"}
    assert not any(catalog.scenarios[name].needs_options for name in full)


def test_names_and_strategies_are_found_in_every_tier(catalog: Catalog) -> None:
    assert ids(catalog, "lost-worker", "smoke.baseline") == ("smoke.lost-worker", "smoke.baseline")
    standard = ("smoke.multi-worker", "smoke.multi-worker-features")
    assert ids(catalog, strategy="multi-worker", tier="standard") == standard
    assert ids(catalog, strategy="multi-worker") == (*standard, "smoke.lost-worker")


@cases(
    (("basline",), {}, "'basline'.*'baseline'"),
    (("batchs",), {}, "'batchs'.*'odd-batches'"),
    ((), {"strategy": "miror"}, "--strategy miror.* mirrored, one-device"),
    ((), {"tier": "fast"}, "--tier fast.* quick, standard, full"),
    (("baseline",), {"strategy": "tpu"}, "--tier and --strategy"),
)
def test_unknown_names_are_usage_errors(
    catalog: Catalog, names: tuple[str, ...], options: dict[str, str], pattern: str
) -> None:
    with pytest.raises(UsageError, match=pattern):
        ids(catalog, *names, **options)


def test_checklist_has_every_check_of_its_scenarios(catalog: Catalog) -> None:
    checklist = checklist_of(catalog, choose_scenarios(catalog, ["state"]), "smoke-chosen", replicas=3)
    assert {entry.check.id for entry in checklist.entries} == {
        "smoke.state",
        "smoke.gradient-accumulation",
        "smoke.gpus-worked",
        "smoke.gpus-unslowed",
    }
    (running,) = scenarios_to_run(checklist, plan(checklist, catalog))
    assert (running.scenario.id, running.replicas) == ("smoke.state", 3)
    assert not checklist.assumptions.expects_gpus


@cases((600.0, 600.0 - HOT_S), (HOT_S / 2, 0.0))
def test_parameter_of_a_check_is_a_setting_of_its_scenario(catalog: Catalog, hot_s: float, more_s: float) -> None:
    scenario = catalog.scenarios["smoke.same-bits"]
    checklist = checklist_of(catalog, [scenario], "smoke-chosen", replicas=2)
    planned = plan(checklist, catalog)
    (usual,) = scenarios_to_run(checklist, planned)
    assert usual.scenario == scenario
    changed = [
        replace(entry, parameters={"hot_s": hot_s}) if entry.check.id == scenario.id else entry for entry in planned
    ]
    (running,) = scenarios_to_run(checklist, changed)
    assert dict(running.scenario.settings) == {"hot_s": hot_s}
    assert running.scenario.deadline_s == scenario.deadline_s + more_s


def test_added_scenario_trains_on_the_devices_of_the_others(catalog: Catalog) -> None:
    baseline, other = (catalog.scenarios[name] for name in QUICK[:2])
    listed = checklist_of(catalog, [baseline], "mine", replicas=4)
    both = with_scenario(listed, catalog, other)
    assert [entry.replicas for entry in both.scenarios] == [4, 4]
    alone = plan(both, catalog, select=[baseline.id])
    assert [entry.scenario.id for entry in scenarios_to_run(both, alone)] == [baseline.id]


def test_without_a_number_of_replicas_gpus_are_expected(catalog: Catalog) -> None:
    checklist = checklist_of(catalog, choose_scenarios(catalog), "smoke-quick")
    assert checklist.assumptions.expects_gpus
    assert {entry.replicas for entry in checklist.scenarios} == {"gpus"}


def test_typical_time_adds_cases_to_one_import(catalog: Catalog) -> None:
    scenarios = choose_scenarios(catalog)
    alone = sum(scenario.typical_s for scenario in scenarios)
    assert typical_seconds(scenarios) - typical_seconds(scenarios, parallel=2) == pytest.approx(alone / 2)


def test_scenarios_over_pairs_scale_with_the_number_of_pairs(catalog: Catalog) -> None:
    (pairs,) = choose_scenarios(catalog, ["pairs"])
    at_two, at_sixteen = (typical_seconds([pairs], replicas=number) for number in (2, 16))
    assert at_sixteen - at_two == pytest.approx(120 * pairs.pair_s)
    assert typical_seconds([pairs]) == at_two
