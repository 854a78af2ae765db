"""Small catalogs of checks, so that the engine is tested without the built-in checks."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from kdoctor.catalog.load import Catalog, Contribution, assemble
from kdoctor.check import Check, check
from kdoctor.facts import Gpus, Host, SmokeRun
from kdoctor.model import Assumptions, Evidence, Outcome, Severity
from kdoctor.probes.probe import Probe
from kdoctor.smoke.scenario import Scenario, ScenarioKind


def described(check_id: str, **options: Any) -> Callable[[Callable[..., Iterator[Outcome]]], Check]:
    """``check`` for a function without a docstring; an error unless a severity is given."""

    def make(function: Callable[..., Iterator[Outcome]]) -> Check:
        function.__doc__ = "It is good.\n\nWhy: it must be.\nRemedy: fix it.\nSource: this test."
        return check(check_id, **{"severity": Severity.ERROR, **options})(function)

    return make


def host_check(check_id: str = "host.memory", **options: Any) -> Check:
    """A check that passes on any host."""

    def function(
        host: Host, *, least_gib: float = 1.0, names: tuple[str, ...] = (), level: Literal["near", "far"] = "near"
    ) -> Iterator[Outcome]:
        yield Evidence(subject="host", observed=f"{host.os} {least_gib} {names} {level}")

    return described(check_id, **options)(function)


def gpu_check(check_id: str = "gpu.free", **options: Any) -> Check:
    """A check of GPUs that uses the assumptions of the checklist."""

    def function(gpus: Gpus, assumptions: Assumptions) -> Iterator[Outcome]:
        yield Evidence(subject="GPUs", observed=f"{gpus.count}, {assumptions.expects_gpus}")

    return described(check_id, **{"needs_gpus": True, **options})(function)


def smoke_check(check_id: str = "smoke.baseline", scenario: str = "smoke.baseline", **options: Any) -> Check:
    """A check of the run of a scenario."""

    def function(run: SmokeRun) -> Iterator[Outcome]:
        yield Evidence(subject=run.scenario, observed="trained")

    return described(check_id, scenario=scenario, **options)(function)


def scenario(scenario_id: str = "smoke.baseline", kind: ScenarioKind = "baseline") -> Scenario:
    """A scenario that is never run."""
    return Scenario(
        id=scenario_id,
        version=1,
        kind=kind,
        title="A training",
        expect="it trains",
        program=Path("none.py"),
        cases=("only",),
        deadline_s=1.0,
    )


def probe(name: str = "host", *groups: Any) -> Probe:
    """A probe that reads nothing."""
    return Probe(name=name, provides=groups or (Host, Gpus), collect=lambda context: {}, deadline_s=1.0)


def contribute(*items: Check | Probe | Scenario, origin: str = "here (test)") -> list[Contribution]:
    """The items as contributions of one plugin."""
    kinds: dict[type, Literal["checks", "probes", "scenarios"]] = {
        Check: "checks",
        Probe: "probes",
        Scenario: "scenarios",
    }
    return [Contribution(kind=kinds[type(item)], origin=origin, value=item) for item in items]


def small_catalog(*more: Check | Scenario) -> Catalog:
    """Six checks: two of the host (one requires the other), one of Python, two of GPUs and one of a training."""
    return assemble(
        contribute(
            probe(),
            scenario(),
            host_check("host.memory"),
            host_check("host.shared-memory", requires=["host.memory"], severity=Severity.WARNING),
            host_check("versions.python-supported", judges=["python"]),
            gpu_check("gpu.free"),
            gpu_check("gpu.count-expected", judges=["gpus.count"]),
            smoke_check(),
            *more,
        )
    )
