"""Checklists made for chosen scenarios, with every check that judges them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from kdoctor.catalog.load import Catalog
from kdoctor.checklist.resolve import Checklist, ChecklistEntry, ScenarioEntry
from kdoctor.errors import UsageError, did_you_mean, one_of
from kdoctor.model import Assumptions, GpuAssumption
from kdoctor.smoke.scenario import STRATEGIES, TIERS, Framework, Scenario, Tier

IMPORT_S: Mapping[Framework, float] = {"tensorflow": 4.0, "jax": 1.5, "torch": 4.0}
"""Measured seconds to import the framework of a scenario."""

_PREFIX = "smoke."
_LEAST_FOR_PAIRS = 3  # as kdoctor_target.scenarios.pairs has it


def choose_scenarios(
    catalog: Catalog, names: Sequence[str] = (), *, strategy: str | None = None, tier: str | None = None
) -> tuple[Scenario, ...]:
    """The scenarios with these names, this strategy, and this tier or a smaller one.

    Defaults to the tier ``quick``; names and strategies are looked up in every tier. The scenarios of tier ``job`` run
    only if they are named.

    Raises:
        UsageError: unknown scenario, strategy or tier, or no scenario matches.
    """
    wanted = [_named(catalog, name) for name in names] or list(catalog.scenarios.values())
    needing = next((scenario for scenario in wanted if names and scenario.needs_options), None)
    if needing:
        raise UsageError(f"{needing.id} needs options that say what to train", hint=f"See: {needing.needs_options}")
    if strategy is not None:
        one_of("--strategy", strategy, STRATEGIES)
    default: Tier = "full" if names or strategy else "quick"
    tiers = TIERS[: TIERS.index(default if tier is None else one_of("--tier", tier, TIERS)) + 1]
    chosen = [
        scenario
        for scenario in dict.fromkeys(wanted)
        if (strategy is None or scenario.strategy == strategy)
        and (scenario.tier in tiers or (scenario.tier == "job" and names and tier is None))
    ]
    if not chosen:
        raise UsageError("no scenario matches both --tier and --strategy", hint="To list them: kdoctor list scenarios")
    return tuple(chosen)


def checklist_of(
    catalog: Catalog, scenarios: Sequence[Scenario], name: str, *, replicas: int | None = None
) -> Checklist:
    """A checklist of these scenarios and every check that judges one of them, or all trainings.

    Args:
        catalog: what is installed.
        scenarios: the trainings to run.
        name: of the checklist.
        replicas: number of logical CPU devices, which expects no GPU; None for every visible GPU.
    """
    ids = {scenario.id for scenario in scenarios}
    return Checklist(
        name=name,
        version=1,
        owner="kdoctor",
        source="made from the installed scenarios",
        assumptions=Assumptions(gpus=GpuAssumption(count=0) if replicas else GpuAssumption(at_least=1)),
        entries=tuple(
            ChecklistEntry(check=check, severity=check.severity)
            for check in catalog.checks.values()
            if check.scenario in ids or (check.judges_trainings and check.scenario is None)
        ),
        scenarios=tuple(
            ScenarioEntry(scenario=scenario, replicas=replicas or "gpus", expect=scenario.expect)
            for scenario in scenarios
        ),
    )


def with_scenario(checklist: Checklist, catalog: Catalog, scenario: Scenario) -> Checklist:
    """The checklist with a scenario that options ask for, last, and every check that judges it.

    It trains on the devices of the checklist's other scenarios. Without other scenarios it trains on every GPU if GPUs
    are expected, else on two CPU devices.
    """
    listed = {entry.check.id for entry in checklist.entries}
    more = [check for check in catalog.checks.values() if check.scenario == scenario.id and check.id not in listed]
    entries = [entry for entry in checklist.scenarios if entry.scenario.id == scenario.id]
    if not entries:
        default: int | Literal["gpus"] = "gpus" if checklist.assumptions.expects_gpus else 2
        replicas = checklist.scenarios[0].replicas if checklist.scenarios else default
        entries = [ScenarioEntry(scenario=scenario, replicas=replicas, expect=scenario.expect)]
    return replace(
        checklist,
        entries=(*checklist.entries, *(ChecklistEntry(check=check, severity=check.severity) for check in more)),
        scenarios=(*(entry for entry in checklist.scenarios if entry.scenario.id != scenario.id), *entries),
    )


def typical_seconds(scenarios: Iterable[Scenario], *, parallel: int = 1, replicas: int | None = None) -> float:
    """Estimated duration with that number of cases in parallel; measured on two CPU devices.

    Scenarios that train each pair of replicas in turn are scaled by the number of replicas, if given.
    """
    pairs = replicas * (replicas - 1) // 2 if replicas and replicas >= _LEAST_FOR_PAIRS else 0
    chosen = list(scenarios)
    frameworks: set[Framework] = {scenario.framework for scenario in chosen}
    import_s = sum(IMPORT_S[framework] for framework in frameworks)
    return import_s + sum(scenario.typical_s / parallel + scenario.pair_s * pairs for scenario in chosen)


def _named(catalog: Catalog, name: str) -> Scenario:
    found = catalog.scenarios.get(name) or catalog.scenarios.get(_PREFIX + name)
    if found is None:
        # Without the common prefix, only the rest is compared.
        known = [scenario.removeprefix(_PREFIX) for scenario in catalog.scenarios]
        message = f"unknown scenario {name!r}{did_you_mean(name.removeprefix(_PREFIX), known)}"
        raise UsageError(message, hint="To list them: kdoctor list scenarios")
    return found
