from __future__ import annotations

import re

import pytest

from kdoctor.checklist.for_scenarios import checklist_of, choose_scenarios, typical_seconds
from kdoctor.checklist.plan import plan, scenarios_to_run
from kdoctor.engine.catalog import Catalog, load_catalog
from kdoctor.errors import UsageError
from kdoctor.smoke.own_model import OWN_MODEL

QUICK = ("smoke.baseline", "smoke.uneven-final-batch", "smoke.model-outside-scope")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def ids(catalog: Catalog, *names: str, strategy: str | None = None, tier: str | None = None) -> tuple[str, ...]:
    return tuple(scenario.id for scenario in choose_scenarios(catalog, names, strategy=strategy, tier=tier))


def test_it_is_the_quick_tier_unless_more_is_said(catalog: Catalog) -> None:
    assert ids(catalog) == ids(catalog, tier="quick") == QUICK


def test_each_tier_holds_the_ones_before_it(catalog: Catalog) -> None:
    quick, standard, full = (set(ids(catalog, tier=tier)) for tier in ("quick", "standard", "full"))
    assert quick < standard < full == set(catalog.scenarios) - {OWN_MODEL}


def test_names_and_strategies_are_found_in_every_tier(catalog: Catalog) -> None:
    assert ids(catalog, "lost-worker", "smoke.baseline") == ("smoke.lost-worker", "smoke.baseline")
    assert ids(catalog, strategy="multi-worker") == ("smoke.multi-worker", "smoke.lost-worker")
    assert ids(catalog, strategy="multi-worker", tier="standard") == ("smoke.multi-worker",)


@pytest.mark.parametrize(
    ("names", "options", "words"),
    [
        (("basline",), {}, "there is no scenario 'basline'; did you mean 'smoke.baseline'?"),
        (("batchs",), {}, "there is no scenario 'batchs'; did you mean 'smoke.odd-batches'?"),
        ((), {"strategy": "miror"}, "--strategy miror: it is one of mirrored, one-device"),
        ((), {"tier": "fast"}, "--tier fast: it is one of quick, standard, full"),
        (("baseline",), {"strategy": "tpu"}, "no scenario is both"),
    ],
)
def test_what_there_is_not_is_a_usage_error(
    catalog: Catalog, names: tuple[str, ...], options: dict[str, str], words: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        ids(catalog, *names, **options)


def test_the_checklist_asks_for_every_check_of_its_scenarios_and_trains_them(catalog: Catalog) -> None:
    checklist = checklist_of(catalog, choose_scenarios(catalog, ["state"]), "smoke-chosen", replicas=3)
    assert {entry.check.id for entry in checklist.entries} == {
        "smoke.state",
        "smoke.gradient-accumulation",
        "smoke.gpus-worked",
        "smoke.gpus-unslowed",
    }
    (running,) = scenarios_to_run(checklist, plan(checklist, catalog))
    assert (running.scenario.id, running.replicas, running.strategy) == ("smoke.state", 3, "mirrored")
    assert not checklist.assumptions.expects_gpus


def test_without_a_number_of_replicas_gpus_are_expected(catalog: Catalog) -> None:
    checklist = checklist_of(catalog, choose_scenarios(catalog), "smoke-quick")
    assert checklist.assumptions.expects_gpus
    assert {entry.replicas for entry in checklist.scenarios} == {"gpus"}


def test_the_time_is_that_of_the_cases_and_one_import(catalog: Catalog) -> None:
    scenarios = choose_scenarios(catalog)
    alone = sum(scenario.typical_s for scenario in scenarios)
    assert typical_seconds(scenarios) - typical_seconds(scenarios, parallel=2) == pytest.approx(alone / 2)


def test_scenarios_on_jax_ask_for_no_tensorflow(catalog: Catalog) -> None:
    for names, asked in ((["data-parallel"], False), (["data-parallel", "baseline"], True)):
        checklist = checklist_of(catalog, choose_scenarios(catalog, names), "some", replicas=2)
        planned = {item.check.id for item in plan(checklist, catalog)}
        assert ("versions.tensorflow-installed" in planned) is asked
        assert "smoke.gpus-worked" in planned


def test_each_framework_is_imported_once(catalog: Catalog) -> None:
    one, other = choose_scenarios(catalog, ["closed-form", "custom-loop"])
    (on_jax,) = choose_scenarios(catalog, ["data-parallel"])
    assert typical_seconds([one, on_jax]) == pytest.approx(typical_seconds([one]) + typical_seconds([on_jax]))
    assert typical_seconds([one, other]) < typical_seconds([one]) + typical_seconds([other])


def test_what_takes_each_pair_in_turn_counts_them(catalog: Catalog) -> None:
    (pairs,) = choose_scenarios(catalog, ["pairs"])
    at_two, at_sixteen = (typical_seconds([pairs], replicas=number) for number in (2, 16))
    assert at_sixteen - at_two == pytest.approx(120 * pairs.pair_s)
    assert typical_seconds([pairs]) == at_two
