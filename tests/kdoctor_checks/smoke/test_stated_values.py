"""The GPUs, numbers and reasons that the checks of trainings state."""

from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import bus_id, environment, gpu, gpus, sampled_gpu, sampling, smoke_case, smoke_run
from kdoctor.facts import SmokeCase, SmokeRun, SmokeRuns, SmokeWorker, Unavailable, Weights
from kdoctor.model import Finding
from kdoctor_checks.smoke._gpu_usage import Use, UsedGpus, used_gpus, why_not_sampled, why_nothing_sampled
from kdoctor_checks.smoke._judging import did_not_finish
from kdoctor_checks.smoke._replica_gpus import replica_gpus
from kdoctor_checks.smoke.gpus_unslowed import judge_slowdowns

TWO = 2


def used(*cases: SmokeCase, **changes: Any) -> UsedGpus:
    """The GPUs of these cases on a machine with two."""
    run = smoke_run("smoke.baseline", TWO, *cases, **changes)
    return used_gpus(sampling(TWO), SmokeRuns(runs={run.scenario: run}), gpus(TWO), environment())


def names(*devices: str) -> tuple[str, ...]:
    return tuple(f"/job:localhost/replica:0/task:0/device:{device}" for device in devices)


@cases(
    ({"devices": names("GPU:one", "GPU:two")}, {}, "contain no GPU numbers (/job:localhost/"),
    ({"devices": names("GPU:0", "GPU:2")}, {}, "contain no GPU numbers (/job:localhost/"),
    ({"devices": names("GPU:0")}, {}, "1 device of 2 replicas were reported"),
    ({}, {"gpus_seen": 1}, "TensorFlow lists 1 GPU, but 2 are visible"),
)
def test_reason_of_unknown_gpus_is_stated(case: dict[str, Any], changes: dict[str, Any], reason: str) -> None:
    found = used(smoke_case(replicas=TWO, **case), **changes)
    assert found.uses == {}
    (stated,) = found.unknown_reasons
    assert reason in stated


def test_gpu_that_was_not_sampled_is_named() -> None:
    case = smoke_case(replicas=TWO, bus_ids=(bus_id(0), bus_id(1)))
    runs = SmokeRuns(runs={"smoke.baseline": smoke_run("smoke.baseline", TWO, case)})
    found = used_gpus(sampling(1), runs, gpus(TWO), environment())
    assert (set(found.uses), found.unsampled) == ({0}, (gpu(1).subject,))
    unlisted = used_gpus(sampling(1), runs, gpus(1), environment())
    assert unlisted.unsampled == (f"GPU {bus_id(1)}",)


@pytest.mark.parametrize("addresses", [True, False], ids=["known address", "no address"])
def test_gpu_that_was_not_sampled_is_named_once_without_addresses_from_cuda(addresses: bool) -> None:  # noqa: FBT001
    machine = gpus(TWO, *(gpu(index, **({} if addresses else {"bus_id": None})) for index in range(TWO)))
    runs = SmokeRuns(runs={"smoke.baseline": smoke_run("smoke.baseline", TWO, smoke_case(replicas=TWO))})
    samples = sampling(1, *([] if addresses else [sampled_gpu(0, bus_id=None)]))
    found = used_gpus(samples, runs, machine, environment())
    assert (set(found.uses), found.unsampled) == ({0}, (machine.devices[1].subject,))


def test_names_of_the_first_three_devices_are_stated() -> None:
    (stated,) = used(smoke_case(replicas=4, devices=names("GPU:a", "GPU:b", "GPU:c", "GPU:d"))).unknown_reasons
    assert "GPU:c" in stated
    assert "GPU:d" not in stated


def test_training_on_unknown_gpus_leaves_the_others() -> None:
    unknown = smoke_case("unknown", TWO, devices=names("GPU:a", "GPU:b"))
    found = used(unknown, smoke_case(replicas=TWO))
    assert (set(found.uses), len(found.unknown_reasons)) == ({0, 1}, 1)


def test_training_on_gpus_and_cpus_uses_no_gpus() -> None:
    found = used(smoke_case(replicas=TWO, devices=names("GPU:0", "CPU:0")))
    assert (found.uses, found.unknown_reasons) == ({}, ())


def test_link_to_a_gpu_that_the_driver_does_not_list_is_unknown() -> None:
    case = smoke_case(replicas=TWO, bus_ids=(bus_id(0), "0000:ff:00.0"))
    found = replica_gpus(case, gpus(TWO))
    assert (found.link(0, 1), found.level(0, 1)) == (None, None)
    assert found.pair_name(0, 1) == f"{gpu(0).subject} - GPU:1 (0000:ff:00.0)"


def test_run_that_did_not_take_place_leaves_the_others() -> None:
    good = smoke_run("smoke.baseline", TWO, smoke_case(replicas=TWO))
    on_cpu = smoke_run("smoke.cpu", TWO, smoke_case(replicas=TWO), devices_kind="cpu")
    runs: dict[str, SmokeRun | Unavailable] = {
        "smoke.first": Unavailable(unavailable="it died"),
        "smoke.cpu": on_cpu,
        "smoke.baseline": good,
    }
    found = used_gpus(sampling(TWO), SmokeRuns(runs=runs), gpus(TWO), environment())
    assert {index: [use.case for use in uses] for index, uses in found.uses.items()} == {
        index: list(good.cases) for index in range(TWO)
    }


@cases((2, 6, 6, True), (1, 6, 6, False), (2, 1, 1, True), (2, 6, 5, False), (2, 0, 0, False))
def test_work_is_shared_if_all_variables_are_mirrored(
    replicas: int, variables: int, mirrored: int, *, shared: bool
) -> None:
    weights = Weights(variables=variables, mirrored=mirrored, nonfinite=(), replicas_agree=True)
    case = smoke_case(replicas=replicas, weights=weights)
    assert Use(case=case, sampled=sampled_gpu(0).cases[0]).shared is shared
    assert not Use(case=smoke_case(replicas=2, weights=None), sampled=sampled_gpu(0).cases[0]).shared


@cases(
    ({"state": "not-started"}, "no training ran on GPUs"),
    ({"state": "not-started", "error": "no NVML"}, "no NVML"),
    ({"state": "failed"}, "NVML could not be queried (failed)"),
    ({"state": "failed", "error": "it hung"}, "NVML could not be queried (it hung)"),
    ({"gpus": ()}, "no GPU was sampled"),
    ({"gpus": (), "error": "it died"}, "it died"),
)
def test_reason_of_missing_samples_is_stated(changes: dict[str, Any], reason: str) -> None:
    nothing = why_nothing_sampled(sampling(1, **changes))
    assert nothing is not None
    assert nothing.reason == reason


def test_gpu_without_samples_has_a_reason() -> None:
    silent = sampled_gpu(0, during=type(sampled_gpu(0).during)(samples=0), errors={})
    ended = "it was not sampled (the trainings ended before the first sample)"
    assert why_not_sampled(sampling(1), silent) == ended
    assert why_not_sampled(sampling(1, error="NVML died"), silent) == "it was not sampled (NVML died)"
    assert why_not_sampled(sampling(1), sampled_gpu(0)) is None


def test_gpu_that_reports_no_events_is_skipped_by_its_name() -> None:
    bare = type(sampled_gpu(0).during)(samples=3)
    unread = {"clock_event_reasons": "NVML_ERROR_NOT_SUPPORTED"}
    for name, stated in (("Tesla K80", "Tesla K80"), (None, sampled_gpu(0).subject)):
        silent = sampled_gpu(0, name=name, during=bare, errors=unread)
        outcome = judge_slowdowns(sampling(1, silent), silent)
        assert getattr(outcome, "reason", None) == f"{stated} does not report clock event reasons"
    broken = sampled_gpu(0, during=bare, errors={"clock_event_reasons": "Unknown Error"})
    outcome = judge_slowdowns(sampling(1, broken), broken)
    assert getattr(outcome, "reason", None) == "clock event reasons were not read (Unknown Error)"


WORKERS = (SmokeWorker(name="worker 0", outcome="raised"),)


@cases(
    (WORKERS, "UnavailableError: Connection reset", "one process stopped responding"),
    ((), "UnavailableError: Connection reset", "are compatible"),
    (WORKERS, "ValueError: shapes", "are compatible"),
)
def test_lost_peer_is_an_error_of_several_processes(
    workers: tuple[SmokeWorker, ...], message: str, summary: str
) -> None:
    raised: dict[str, Any] = {"outcome": "raised", "phase": "train", "error_type": "X", "error_message": message}
    found = did_not_finish(smoke_run("smoke.multi-worker", 2), smoke_case(replicas=2, workers=workers, **raised))
    assert isinstance(found, Finding)
    assert summary in found.remedy.summary
