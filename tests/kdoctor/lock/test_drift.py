import re
from typing import Any

from helpers.cases import cases
from helpers.facts import environment, gpus, host, keras, kernel, package, packages, smoke_case, smoke_run
from helpers.locks import RECORDED, lock, node_facts
from helpers.reports import failure, finding, result
from kdoctor.engine.report import Drift, Result
from kdoctor.facts import FactGroup, Gpus, Packages, SmokeRuns, Unavailable
from kdoctor.lock.drift import drift
from kdoctor.lock.facts import recorded_facts
from kdoctor.model import Severity, Status


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


def test_change_explains_a_failed_assumption() -> None:
    found = compared(gpus(driver_version="575.57.08"), results=(failure("versions.runtime-expected"),))
    assert [(change.fact, change.explains) for change in found.changes] == [
        ("driver.version", ("versions.runtime-expected",))
    ]


def test_fact_that_an_older_kdoctor_did_not_record_is_not_drift() -> None:
    before = lock(keras(settings={}))
    assert "floatx" not in before.facts["keras"]
    named = host(container="docker", image="train:8", image_from="KDOCTOR_IMAGE")
    now = recorded_facts(node_facts(named))
    assert changes(drift(before, now, (), "job.lock.yaml")) == [("host.container", "none", "docker")]
    without = lock(facts={name: section for name, section in lock().facts.items() if name != "python"})
    found = changes(drift(without, recorded_facts(node_facts()), (), "job.lock.yaml"))
    assert {(fact.partition(".")[0], old) for fact, old, _ in found} == {("python", None)}


def test_most_likely_cause_is_first() -> None:
    changed = (*other_keras(), environment(), kernel(version="580.105.09"))
    found = compared(*changed, results=(failure("smoke.baseline"), result("driver.loaded")))
    facts = [change.fact for change in found.changes]
    assert facts[:2] == ["keras.version", "packages.keras"]
    assert found.changes[0].explains == ("smoke.baseline",)
    assert found.changes[-1].fact in {"driver.module", "environment.NCCL_DEBUG"}


def test_best_explained_failure_is_first() -> None:
    found = compared(*other_keras(), results=(failure("smoke.baseline"), failure("versions.keras-compatible")))
    change = next(change for change in found.changes if change.fact == "packages.keras")
    assert change.explains == ("versions.keras-compatible", "smoke.baseline")


def test_name_in_a_finding_outweighs_everything() -> None:
    others = [package(item.name, item.version) for item in packages().installed if item.name != "h5py"]
    blamed = failure("versions.package-conflicts", finding("tensorflow", observed="h5py 3.20.0 is installed"))
    found = compared(packages(*others, package("h5py", "3.20.0")), keras(backend="jax"), results=(blamed,))
    assert found.changes[0].fact == "packages.h5py"


def test_failure_of_the_recorded_run_is_not_explained() -> None:
    hazard = failure("smoke.starved-replica", severity=Severity.WARNING)
    before = lock()
    checks = {hazard.id: "fail", "smoke.baseline": "pass"}
    before = before.model_copy(update={"facts": {**before.facts, "checks": checks}})
    now = recorded_facts(node_facts(*other_keras()))
    found = drift(before, now, (hazard, failure("smoke.baseline")), "job.lock.yaml")
    assert {change.explains for change in found.changes} == {("smoke.baseline",)}


def test_failure_of_the_recorded_run_is_explained_if_its_finding_names_the_change() -> None:
    blamed = failure("versions.package-conflicts", finding("keras", observed="keras 3.6.0"))
    before = lock()
    before = before.model_copy(update={"facts": {**before.facts, "checks": {blamed.id: "fail"}}})
    found = drift(before, recorded_facts(node_facts(*other_keras())), (blamed,), "job.lock.yaml")
    assert [change.fact for change in found.changes if change.explains] == ["packages.keras"]


def test_passed_and_unknown_checks_are_not_explained() -> None:
    found = compared(gpus(7), results=(result("gpu.free"), result("gpu.same-model", Status.UNKNOWN)))
    assert all(not change.explains for change in found.changes)


def test_unreadable_section_is_listed_and_not_drift() -> None:
    facts = {
        **node_facts(),
        Packages: Unavailable(unavailable="the interpreter hung"),
        Gpus: Unavailable(unavailable="NVML hung"),
    }
    found = drift(lock(), recorded_facts(facts), (), "x")
    assert found.changes == ()
    assert found.unread == (
        "driver: NVML hung", "gpus: NVML hung", "packages: the interpreter hung", "topology: NVML hung"
    )  # fmt: skip


def test_what_was_read_of_a_section_is_compared() -> None:
    facts = {**node_facts(kernel(flavour="proprietary")), Gpus: Unavailable(unavailable="NVML hung")}
    assert [(change.old, change.new) for change in drift(lock(), recorded_facts(facts), (), "x").changes] == [
        ("open", "proprietary")
    ]


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


def test_slower_step_is_reported_with_its_factor() -> None:
    name = "measured.smoke.baseline/mirrored/step-seconds"
    ((fact, old, new),) = changes(step(0.023))
    assert (fact, old) == (name, "0.01")
    assert re.findall(r"[\d.]+", new or "") == ["0.023", "2.3", "2"]


def test_faster_step_is_not_drift() -> None:
    assert step(0.0001).changes == ()


def test_step_of_another_training_is_not_compared() -> None:
    for other in (step(0.1, replicas=2), step(0.1, devices_kind="cpu"), step(0.1, version=2)):
        assert not [change for change in other.changes if change.fact.endswith("step-seconds")]
        assert other.changes


def test_factor_for_slower_steps_can_be_set() -> None:
    strict = recorded_facts(node_facts(), slower=1.2).measured
    now = recorded_facts(node_facts(smoke_run("smoke.baseline", 8, smoke_case(step_s=0.015))))
    new = changes(drift(lock(measured=strict), now, (), "x"))[0][2]
    assert re.findall(r"[\d.]+", new or "") == ["0.015", "1.5", "1.2"]
    assert drift(lock(), now, (), "x").changes == ()


def test_scenario_that_the_lock_lacks_is_not_drift() -> None:
    """A checklist that asks for a further scenario records it the next time."""
    facts = {
        **node_facts(),
        SmokeRuns: SmokeRuns(runs={name: smoke_run(name) for name in ("smoke.baseline", "smoke.pairs")}),
    }
    assert drift(lock(), recorded_facts(facts), (), "x").changes == ()


def test_new_case_of_a_recorded_scenario_is_drift() -> None:
    found = compared(smoke_run("smoke.baseline", 8, smoke_case(), smoke_case("second")))
    assert "scenarios.smoke.baseline/second/outcome" in {change.fact for change in found.changes}


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


def test_case_of_one_of_several_recorded_scenarios_is_drift() -> None:
    def with_loss(loss: float | None) -> SmokeRuns:
        case = smoke_case(losses=(1.0, loss))
        return SmokeRuns(runs={"smoke.baseline": smoke_run("smoke.baseline", 8, case), "smoke.x": smoke_run("smoke.x")})

    before, now = (recorded_facts({**node_facts(), SmokeRuns: with_loss(loss)}) for loss in (0.5, None))
    found = drift(lock(facts=before.facts, measured=before.measured), now, (), "x")
    assert [change.fact for change in found.changes] == ["scenarios.smoke.baseline/mirrored/loss"]
