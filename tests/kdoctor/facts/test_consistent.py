"""Records of trainings that contradict themselves."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import gpu, gpus, host, keras, kernel, lost_gpu, package, packages, sampled_gpu, sampling, tensorflow
from helpers.facts.gpus import bus_id
from helpers.facts.smoke import smoke_run
from kdoctor.facts import (
    FactGroup,
    GpuSampling,
    Kernel,
    KernelDriver,
    SampledGpu,
    SmokeCase,
    SmokeRun,
    SmokeRuns,
    SmokeWorker,
    Unavailable,
    Weights,
)  # fmt: skip
from kdoctor.facts.bounds import SHARED, Identity, OfFailure, marked
from kdoctor.facts.consistent import consistent
from kdoctor.testing import fact_table

RUN = smoke_run(replicas=8)
(CASE,) = RUN.cases
GPU = "/job:localhost/replica:0/task:0/device:GPU:{}"


def reason(*environment: FactGroup, **changes: Any) -> str | None:
    """Why the run is not used; None if it is."""
    run = replace(RUN, cases=(replace(CASE, **changes),))
    runs = consistent(fact_table(SmokeRuns(runs={"smoke.baseline": run}), *environment), {})[SmokeRuns]
    assert isinstance(runs, SmokeRuns)
    found = runs.runs["smoke.baseline"]
    return found.unavailable if isinstance(found, Unavailable) else None


ENDED = (SmokeWorker(name="process 0", outcome="timed-out"),)
FAILED = {"exit_code": 3, "log_lines": ("NCCL WARN",)}
CONTRADICTIONS: tuple[dict[str, Any], ...] = (
    *({name: FAILED.get(name, "SIGSEGV")} for name in marked(SmokeCase, OfFailure)),
    {"devices": (GPU.format(0),) * 8},
    {"devices": (GPU.format(0), GPU.format(1))},
    {"bus_ids": ("0000:1b:00.0",) * 8},
    {"bus_ids": ("0000:1b:00.0",)},
    {"devices": tuple(map(GPU.format, range(3))), "measures": {"workers": 2}},
    {"phase": "build"},
    {"seconds": 60.0},
    {"weights": Weights(variables=6, mirrored=9, nonfinite=(), replicas_agree=True)},
    {"examples": 0},
    {"steps": 0},
    {"global_batch": 0},
)


@pytest.mark.parametrize("changes", CONTRADICTIONS, ids=repr)
def test_training_that_cannot_have_been_as_recorded_is_not_used(changes: dict[str, Any]) -> None:
    assert (reason(**changes) or "").startswith("its record contradicts itself: mirrored ")
    assert reason(**{**changes, "outcome": "raised"}) is None


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"devices": tuple(map(GPU.format, range(8))), "bus_ids": (None,) * 8},
        {"exit_code": 0},
        {"devices": tuple(map(GPU.format, range(4))), "measures": {"workers": 2}},  # four more on another node
        {"steps": None, "examples": None},
        {"steps": 0, "phase": "strategy", "stacks": "wait", "workers": ENDED},  # as intended
    ],
    ids=repr,
)
def test_training_without_a_contradiction_is_used(changes: dict[str, Any]) -> None:
    assert reason(**changes) is None


def used(known: int, run: SmokeRun) -> bool:
    runs = consistent(fact_table(SmokeRuns(runs={"smoke.baseline": run})), {"smoke.baseline": known})[SmokeRuns]
    return isinstance(runs, SmokeRuns) and isinstance(runs.runs["smoke.baseline"], SmokeRun)


def test_run_of_another_scenario_or_of_an_unknown_version_is_not_used() -> None:
    assert not used(1, replace(RUN, scenario="smoke.speed"))
    assert [used(2, replace(RUN, version=version)) for version in (0, 1, 2, 3)] == [False, True, True, False]


def refused(*groups: FactGroup) -> set[type[FactGroup]]:
    return {kind for kind, group in consistent(fact_table(*groups), {}).items() if isinstance(group, Unavailable)}


def test_module_that_is_not_loaded_where_nvml_works_is_not_used() -> None:
    unloaded = kernel(2, loaded=False)
    assert refused(unloaded, gpus(2), host()) == {KernelDriver}
    assert refused(unloaded, gpus(2), host(container="docker")) == set()
    assert refused(unloaded, gpus(2), host(kernel="6.6.87-microsoft-standard-WSL2")) == set()
    assert refused(unloaded, gpus(0, state="driver-not-loaded"), host()) == set()
    assert refused(kernel(2), Kernel(modules=())) == {Kernel}
    assert refused(kernel(2), Kernel(modules=("nvidia",))) == refused(unloaded, Kernel(modules=())) == set()


@pytest.mark.parametrize("name", marked(SampledGpu, Identity))
def test_sampling_of_another_gpu_is_not_used(name: str) -> None:
    listed = gpus(2, gpu(0), gpu(1))
    assert refused(sampling(2), listed) == set()
    other = replace(sampled_gpu(1), **{name: getattr(sampled_gpu(7), name)})
    assert refused(sampling(2, sampled_gpu(0), other), listed) == {GpuSampling}
    assert refused(sampling(2, replace(sampled_gpu(0), errors={name: SHARED})), listed) == {GpuSampling}


def test_training_on_another_machines_gpus_is_not_used() -> None:
    own, foreign = tuple(bus_id(index) for index in range(8)), ("0000:ff:00.0",)
    assert reason(gpus(8), bus_ids=own) is None
    assert "0000:ff:00.0, which is not a GPU of this machine" in (reason(gpus(8), bus_ids=own[1:] + foreign) or "")
    assert reason(gpus(8, *(gpu(index) for index in range(7)), lost_gpu(7)), bus_ids=own) is None


def test_record_of_other_versions_is_not_used() -> None:
    assert reason(tensorflow(), keras()) is None
    assert reason(tensorflow(version="2.21.0+build.7")) is None
    assert "and 2.21.0rc1 is installed" in (reason(tensorflow(version="2.21.0rc1")) or "")
    assert "TensorFlow 2.21.0, and 2.20.0 is installed" in (reason(tensorflow(version="2.20.0")) or "")
    assert "keras 3.15.1, and 3.10.0 is installed" in (reason(keras(version="3.10.0")) or "")
    assert reason(keras(package="tf-keras", version="2.21.0")) is None
    assert reason(tensorflow(version="of the vendor")) is None


@cases(
    ("tensorflow", "2.21.0", True), ("tensorflow", "2.20.0", False), ("tensorflow-rocm", "2.21.0.600", True),
    ("tf-nightly", "2.21.0.dev20260101", False), ("keras", "3.15.1", True), ("keras", "3.12.0", False),
    ("tf-keras", "2.21.0", True), ("keras", None, True),
)  # fmt: skip
def test_record_of_other_versions_than_the_packages_is_not_used(name: str, version: str, *, fits: bool) -> None:
    assert (reason(packages(package(name, version))) is None) is fits
    assert (
        reason(packages(package(name, version), package(name, "0"), package(name, "2.21.0"), package(name, "3.15.1")))
        is None
    )
