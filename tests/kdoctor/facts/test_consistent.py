"""Records of trainings that contradict themselves."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import gpu, gpus, keras, lost_gpu, tensorflow
from helpers.facts.gpus import bus_id
from helpers.facts.smoke import smoke_run
from kdoctor.facts import FactGroup, SmokeRuns, SmokeWorker, Unavailable, Weights
from kdoctor.facts.consistent import consistent
from kdoctor.testing import fact_table

RUN = smoke_run(replicas=8)
(CASE,) = RUN.cases
GPU = "/job:localhost/replica:0/task:0/device:GPU:{}"


def reason(*environment: FactGroup, **changes: Any) -> str | None:
    """Why the run is not used; None if it is."""
    run = replace(RUN, cases=(replace(CASE, **changes),))
    runs = consistent(fact_table(SmokeRuns(runs={"smoke.baseline": run}), *environment))[SmokeRuns]
    assert isinstance(runs, SmokeRuns)
    found = runs.runs["smoke.baseline"]
    return found.unavailable if isinstance(found, Unavailable) else None


@pytest.mark.parametrize(
    "changes",
    [
        {"devices": (GPU.format(0),) * 8},
        {"bus_ids": ("0000:1b:00.0",) * 8},
        {"signal": "SIGSEGV"},
        {"exit_code": 3},
        {"error_type": "RuntimeError"},
        {"weights": Weights(variables=6, mirrored=9, nonfinite=(), replicas_agree=True)},
        {"examples": 0},
        {"steps": 0},
        {"global_batch": 0},
    ],
    ids=repr,
)
def test_training_that_cannot_have_been_as_recorded_is_not_used(changes: dict[str, Any]) -> None:
    assert (reason(**changes) or "").startswith("its record contradicts itself: mirrored ")
    assert reason(**{**changes, "outcome": "raised"}) is None


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"devices": tuple(map(GPU.format, range(8))), "bus_ids": (None,) * 8},
        {"exit_code": 0},
        {"steps": None, "examples": None},
        {"steps": 0, "workers": (SmokeWorker(name="process 0", outcome="timed-out"),)},  # ended, as intended
    ],
    ids=repr,
)
def test_training_without_a_contradiction_is_used(changes: dict[str, Any]) -> None:
    assert reason(**changes) is None


def test_case_that_ended_twice_and_run_of_another_scenario_are_not_used() -> None:
    twice = replace(RUN, cases=(CASE, replace(CASE, outcome="raised")))
    for run in (twice, replace(RUN, scenario="smoke.speed")):
        runs = consistent(fact_table(SmokeRuns(runs={"smoke.baseline": run})))[SmokeRuns]
        assert isinstance(runs, SmokeRuns)
        assert isinstance(runs.runs["smoke.baseline"], Unavailable)


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
