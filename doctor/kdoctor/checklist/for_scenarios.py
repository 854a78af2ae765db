"""A checklist that nobody wrote: some scenarios alone, with every check that judges them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from kdoctor.checklist.resolve import Checklist, ChecklistEntry, ScenarioEntry
from kdoctor.engine.catalog import Catalog
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.model import Assumptions, GpuAssumption
from kdoctor.smoke.own_model import OWN_MODEL
from kdoctor.smoke.scenario import STRATEGIES, TIERS, Framework, Scenario, Strategy, Tier

IMPORT_S: Mapping[Framework, float] = {"tensorflow": 4.0, "jax": 1.5}
"""Seconds to import what the scenarios compute with, where they were measured."""

_PREFIX = "smoke."
_LEAST_FOR_PAIRS = 3  # as kdoctor_target.scenarios.pairs has it


def choose_scenarios(
    catalog: Catalog, names: Sequence[str] = (), *, strategy: str | None = None, tier: str | None = None
) -> tuple[Scenario, ...]:
    """The scenarios of those names, of that strategy, of that tier and those above it.

    Without any of the three it is the tier ``quick``; names and strategies are looked for in every tier.

    Raises:
        UsageError: there is no such scenario, strategy or tier, or nothing is left.
    """
    wanted = [_named(catalog, name) for name in names] or list(catalog.scenarios.values())
    if any(name.removeprefix(_PREFIX) == OWN_MODEL.removeprefix(_PREFIX) for name in names):
        raise UsageError(
            f"{OWN_MODEL} needs a model", hint="See: kdoctor check --model package.module:function --data ..."
        )
    if strategy is not None:
        _known("--strategy", strategy, STRATEGIES)
    if tier is not None:
        _known("--tier", tier, TIERS)
    otherwise: Tier = "full" if names or strategy else "quick"
    most = TIERS.index(otherwise) if tier is None else next(place for place, one in enumerate(TIERS) if one == tier)
    chosen = [
        scenario
        for scenario in dict.fromkeys(wanted)
        if (strategy is None or scenario.strategy == strategy) and scenario.tier in TIERS[: most + 1]
    ]
    if not chosen:
        raise UsageError("no scenario is both", hint="See what there is with: kdoctor list --scenarios")
    return tuple(chosen)


def checklist_of(
    catalog: Catalog, scenarios: Sequence[Scenario], name: str, *, replicas: int | None = None
) -> Checklist:
    """The checklist that asks for these scenarios and for every check that judges one of them, or all trainings.

    Args:
        catalog: what is installed.
        scenarios: what is to be trained.
        name: the checklist's.
        replicas: number of logical CPU devices, so that no GPU is expected; None for every visible GPU.
    """
    ids = {scenario.id for scenario in scenarios}
    return Checklist(
        name=name,
        version=1,
        owner="kdoctor",
        source="made of the installed scenarios",
        assumptions=Assumptions(gpus=GpuAssumption(count=0) if replicas else GpuAssumption(at_least=1)),
        entries=tuple(
            ChecklistEntry(check=check, severity=check.severity)
            for check in catalog.checks.values()
            if check.scenario in ids or (check.judges_trainings and check.scenario is None)
        ),
        scenarios=tuple(
            ScenarioEntry(
                scenario=scenario, replicas=replicas or "gpus", expect=scenario.expect, strategy=scenario.strategy
            )
            for scenario in scenarios
        ),
    )


def with_own_model(checklist: Checklist, catalog: Catalog) -> Checklist:
    """The checklist with every check that judges the user's own model and data.

    They are trained on what the checklist's other scenarios are trained on; without any, on every GPU where GPUs are
    expected, and otherwise over two CPU devices.
    """
    listed = {entry.check.id for entry in checklist.entries}
    more = [check for check in catalog.checks.values() if check.scenario == OWN_MODEL and check.id not in listed]
    ours = [entry for entry in checklist.scenarios if entry.scenario.id == OWN_MODEL]
    if not ours:
        scenario = catalog.scenarios[OWN_MODEL]
        otherwise: int | Literal["gpus"] = "gpus" if checklist.assumptions.expects_gpus else 2
        replicas = checklist.scenarios[0].replicas if checklist.scenarios else otherwise
        ours = [ScenarioEntry(scenario=scenario, replicas=replicas, expect=scenario.expect, strategy=scenario.strategy)]
    return replace(
        checklist,
        entries=(*checklist.entries, *(ChecklistEntry(check=check, severity=check.severity) for check in more)),
        scenarios=(*(entry for entry in checklist.scenarios if entry.scenario.id != OWN_MODEL), *ours),
    )


def typical_seconds(scenarios: Iterable[Scenario], *, parallel: int = 1, replicas: int | None = None) -> float:
    """About how long they take, where as many cases run at once; measured over two CPU devices.

    What takes each pair of replicas in turn is counted where the number of replicas is given.
    """
    pairs = replicas * (replicas - 1) // 2 if replicas and replicas >= _LEAST_FOR_PAIRS else 0
    chosen = list(scenarios)
    frameworks: set[Framework] = {scenario.framework for scenario in chosen}
    import_s = sum(IMPORT_S[framework] for framework in frameworks)
    return import_s + sum(scenario.typical_s / parallel + scenario.pair_s * pairs for scenario in chosen)


def _named(catalog: Catalog, name: str) -> Scenario:
    found = catalog.scenarios.get(name) or catalog.scenarios.get(_PREFIX + name)
    if found is None:
        hint = "kdoctor list --scenarios shows them all."
        # Both with their common beginning, so that what differs counts.
        word = name if "." in name else _PREFIX + name
        raise UsageError(f"there is no scenario {name!r}{did_you_mean(word, catalog.scenarios)}", hint=hint)
    return found


def _known(option: str, word: str, known: Sequence[Strategy] | Sequence[Tier]) -> None:
    if word not in known:
        raise UsageError(f"{option} {word}: it is one of {', '.join(known)}{did_you_mean(word, known)}")
