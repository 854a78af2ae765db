"""Trains cases of scenarios with one interpreter over two CPU replicas, and stores the facts as a snapshot.

A separate program, so that a deadline can end it: ``python -m benchmarks.truth.measure PYTHON OUTPUT FEATURE ...``.
"""

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from benchmarks.truth.judge import feature_name

from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.facts import Facts, SmokeCase, SmokeRun, SmokeRuns
from kdoctor.model import Severity
from kdoctor.run.plan import smoke_plan
from kdoctor.run.session import examination
from kdoctor.smoke.scenario import Scenario
from kdoctor.snapshot.document import Snapshot, dumps

REPLICAS = 2
DEADLINE_S = 1500.0
"""Deadline of the trainings that are stored together."""

_TIERS = ("quick", "standard")
_STRATEGIES = ("mirrored", "multi-worker")
_ABOUT_THE_MACHINE = ("smoke.closed-form", "smoke.cross-device", "smoke.determinism")
"""Scenarios about the machine, not about features of jobs."""


_CALM = 1.5
"""Processes that want to run, per core: the trainings take about one each."""
_DEADLINE_ERRORS = ("DeadlineExceededError", "UnavailableError", "TimeoutError")
"""What TensorFlow and Python raise where another process does not answer in time."""


def feature_scenarios(catalog: Catalog) -> tuple[Scenario, ...]:
    """The scenarios whose cases are features of jobs: no failure paths, and nothing about the machine."""
    return tuple(
        scenario
        for scenario in catalog.scenarios.values()
        if scenario.tier in _TIERS
        and scenario.strategy in _STRATEGIES
        and scenario.framework == "tensorflow"
        and scenario.kind != "failure-path"
        and scenario.id not in _ABOUT_THE_MACHINE
    )


def features(scenarios: Iterable[Scenario]) -> list[str]:
    """The names of their cases in the version matrix."""
    return [feature_name(scenario.id, case) for scenario in scenarios for case in scenario.cases]


def _narrowed(catalog: Catalog, wanted: list[str]) -> Catalog:
    """The catalog with only these features as cases of its scenarios."""
    cases = {
        scenario.id: tuple(case for case in scenario.cases if feature_name(scenario.id, case) in wanted)
        for scenario in catalog.scenarios.values()
    }
    chosen = {name: replace(scenario, cases=cases[name]) for name, scenario in catalog.scenarios.items() if cases[name]}
    return replace(catalog, scenarios=chosen)


def _is_calm() -> bool:
    """Whether other programs left time to the trainings: a deadline then says something about them."""
    return os.getloadavg()[1] <= _CALM * (os.cpu_count() or 1)


def without_late(facts: Facts) -> Facts:
    """The facts without cases that a deadline may have ended because the machine was busy: they are measured again."""
    found = facts.get(SmokeRuns)
    if not isinstance(found, SmokeRuns):
        return facts
    runs = {
        name: replace(run, cases=tuple(case for case in run.cases if not _is_late(case)))
        if isinstance(run, SmokeRun)
        else run
        for name, run in found.runs.items()
    }
    return {**facts, SmokeRuns: SmokeRuns(runs=runs)}


def _is_late(case: SmokeCase) -> bool:
    return case.outcome == "timed-out" or case.error_type in _DEADLINE_ERRORS


def main(python: str, output: str, wanted: list[str]) -> None:
    """Train these features."""
    catalog = _narrowed(load_catalog(), wanted)
    plan = smoke_plan(
        catalog,
        list(catalog.scenarios),
        strategy=None,
        tier=None,
        replicas=REPLICAS,
        fail_on=Severity.ERROR,
        allow_unknown=False,
    )
    with examination(catalog.probes, python, DEADLINE_S) as examined:
        examined.run(plan.trainings())
    if examined.interrupted:
        sys.exit(1)
    facts = examined.facts if _is_calm() else without_late(examined.facts)
    partial = Path(f"{output}.partial")
    partial.write_text(dumps(Snapshot.now(facts)), encoding="utf-8")
    partial.rename(output)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
