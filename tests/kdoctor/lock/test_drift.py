from typing import Any

from helpers.cases import cases
from helpers.facts import environment, gpus, host, keras, kernel, package, packages, smoke_case, smoke_run
from helpers.locks import RECORDED, lock, node_facts
from helpers.reports import failure, finding, result
from kdoctor.engine.report import Drift, Result
from kdoctor.facts import FactGroup, SmokeRuns
from kdoctor.lock.drift import drift
from kdoctor.lock.facts import recorded_facts


def compared(*changed: FactGroup, results: tuple[Result, ...] = ()) -> Drift:
    return drift(lock(), recorded_facts(node_facts(*changed)), results, "job.lock.yaml")


def changes(found: Drift) -> list[tuple[str, str | None, str | None]]:
    return [(change.fact, change.old, change.new) for change in found.changes]


def other_keras(version: str = "3.6.0") -> tuple[FactGroup, ...]:
    others = [package(item.name, item.version) for item in packages().installed if item.name != "keras"]
    return packages(*others, package("keras", version)), keras(version=version)


def test_same_machine_has_no_drift() -> None:
    assert compared() == Drift(lock="job.lock.yaml", recorded=RECORDED)


def test_changed_added_and_removed_facts_are_drift() -> None:
    found = compared(environment(NCCL_P2P_DISABLE="1"), gpus(7))
    assert changes(found) == [
        ("environment.NCCL_DEBUG", "WARN", None),
        ("environment.NCCL_P2P_DISABLE", None, "1"),
        ("gpus.compute-capability.9.0", "8", "7"),
        ("gpus.count", "8", "7"),
        ("gpus.memory-mib.81559", "8", "7"),
        ("gpus.model.NVIDIA H100 80GB HBM3", "8", "7"),
        ("gpus.pcie.gen5 x16", "8", "7"),
        ("topology.pairs.NODE", "28", "21"),
    ]


def test_what_kdoctor_brings_into_the_environment_is_not_drift() -> None:
    brought = package("keras-doctor", "1", "Typer>=0.12", 'torch; extra == "torch"'), package("typer", "1", "click")
    others = package("click", "8"), package("torch", "2"), package("dask", "1", "click")
    found = compared(packages(*packages().installed, *brought, *others))
    assert changes(found) == [("packages.dask", None, "1"), ("packages.torch", None, "2")]


def test_most_likely_cause_is_first() -> None:
    changed = (*other_keras(), environment(), kernel(version="580.105.09"))
    found = compared(*changed, results=(failure("smoke.baseline"), result("driver.loaded")))
    facts = [change.fact for change in found.changes]
    assert facts[:2] == ["keras.version", "packages.keras"]
    assert found.changes[0].explains == ("smoke.baseline",)
    assert found.changes[-1].fact in {"driver.module", "environment.NCCL_DEBUG"}


def test_name_in_a_finding_outweighs_everything() -> None:
    others = [package(item.name, item.version) for item in packages().installed if item.name != "h5py"]
    blamed = failure("versions.package-conflicts", finding("tensorflow", observed="h5py 3.20.0 is installed"))
    found = compared(packages(*others, package("h5py", "3.20.0")), keras(backend="jax"), results=(blamed,))
    assert found.changes[0].fact == "packages.h5py"


def test_scenario_that_did_not_run_is_not_drift() -> None:
    facts = {**node_facts(), SmokeRuns: SmokeRuns()}
    assert drift(lock(), recorded_facts(facts), (), "x").changes == ()


@cases(
    (0.5, 0.01, set()),
    (0.5009, 0.019, set()),
    (0.52, 0.01, {"measured.smoke.baseline/mirrored/final-loss"}),
    (0.5, 0.03, {"measured.smoke.baseline/mirrored/step-seconds"}),
    (None, 0.01, {"scenarios.smoke.baseline/mirrored/loss"}),
)
def test_measure_outside_its_range_is_drift(loss: float | None, step_s: float, drifted: set[str]) -> None:
    run = smoke_run("smoke.baseline", 8, smoke_case(losses=(1.0, loss), step_s=step_s))
    assert {change.fact for change in compared(run).changes} == drifted


def step(seconds: float, replicas: int = 8, **changes: Any) -> Drift:
    return compared(smoke_run("smoke.baseline", replicas, smoke_case(replicas=replicas, step_s=seconds), **changes))


def test_change_is_placed_by_the_failure_that_it_explains_best() -> None:
    """A driver explains a failed training with 4 and its own check with 9, Keras a failed training with 8."""
    changed = (*other_keras(), kernel(version="580.105.09"))
    failed = (failure("driver.loaded"), failure("smoke.baseline"))
    assert [change.fact for change in compared(*changed, results=failed).changes] == [
        "driver.module", "keras.version", "packages.keras"
    ]  # fmt: skip


def test_unlikely_explanation_comes_before_none() -> None:
    """A package explains a failed training with 1. Another number of the training explains nothing."""
    others = [package(item.name, item.version) for item in packages().installed if item.name != "h5py"]
    changed = (
        packages(*others, package("h5py", "3.13.0")),
        smoke_run("smoke.baseline", 8, smoke_case(losses=(1.0, 0.9))),
    )
    found = compared(*changed, results=(failure("smoke.baseline"),))
    assert [(change.fact, change.explains) for change in found.changes] == [
        ("packages.h5py", ("smoke.baseline",)), ("measured.smoke.baseline/mirrored/final-loss", ())
    ]  # fmt: skip


def test_surest_of_several_explanations_counts() -> None:
    """An image explains a failed training with 6, as anything of the host with 1, and a lost GPU with 5."""
    before = lock(host(container="docker", image="train:7", image_from="KDOCTOR_IMAGE"))
    now = recorded_facts(node_facts(host(container="docker", image="train:8", image_from="KDOCTOR_IMAGE"), gpus(7)))
    found = drift(before, now, (failure("smoke.baseline"),), "x")
    assert [change.fact for change in found.changes][:2] == ["host.image", "gpus.compute-capability.9.0"]
