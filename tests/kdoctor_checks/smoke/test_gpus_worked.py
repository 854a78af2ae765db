from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import (
    GIB,
    bus_id,
    case_use,
    environment,
    gpu,
    gpu_use,
    gpus,
    idle_use,
    sampled_gpu,
    sampling,
    smoke_case,
    smoke_run,
    spread,
)
from helpers.judging import compute_check
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, GpuSampling, GpuUse, SmokeRuns, Weights
from kdoctor.model import Severity, Status
from kdoctor_checks.smoke.gpus_worked import gpus_worked

NO_SPREAD: dict[str, Any] = {"memory_used_bytes": None, "processes": None}
WORKED = "utilisation up to 90 %, memory in use up by 596 MiB, 1 compute process (12 samples in 1 training)"
LITTLE = spread(0.0, 0.5, 2.0)


def judged(*facts: FactGroup) -> Result:
    return compute_check(gpus_worked, sampling(2), smoke_run(replicas=2), gpus(2), environment(), *facts)


def second(use: Any, **changes: Any) -> GpuSampling:
    """Two GPUs of which the second was used so."""
    return sampling(2, sampled_gpu(0), sampled_gpu(1, cases=(use,), **changes))


def reason(result: Result) -> str:
    return result.reason or ""


def test_every_gpu_worked() -> None:
    result = judged()
    assert (result.status, result.severity) == (Status.PASS, Severity.WARNING)
    assert [(item.subject, item.observed) for item in result.evidence] == [
        (f"GPU {index} ({bus_id(index)})", WORKED) for index in range(2)
    ]


def test_a_gpu_on_which_nothing_rose_did_not_work() -> None:
    result = judged(second(idle_use()))
    assert result.status is Status.FAIL
    (found,) = result.findings
    assert found.finding.subject == f"GPU 1 ({bus_id(1)})"
    assert found.finding.observed == (
        "memory in use, processes and utilisation never rose in 12 samples in 1 training, while another was busy for "
        "40 % of the time"
    )


def test_a_gpu_that_holds_memory_and_never_computes_while_the_other_does_is_a_training_on_one_gpu() -> None:
    result = judged(second(case_use(utilization_gpu_percent=spread(0.0, 0.0, 0.0))))
    assert result.status is Status.FAIL
    assert result.findings[0].finding.observed.startswith("memory in use up by 596 MiB, 1 compute process, but util")


def test_a_model_from_outside_the_scope_trains_on_one_gpu_on_purpose() -> None:
    """The failure path: its strategy has replicas on both GPUs, and its model has none of their variables."""
    outside = smoke_case(replicas=2, weights=Weights(variables=4, mirrored=0, nonfinite=(), replicas_agree=None))
    run = smoke_run("smoke.baseline", 2, outside)
    assert judged(second(case_use(utilization_gpu_percent=spread(0.0, 0.0, 0.0))), run).status is Status.PASS


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (idle_use(training_samples=2), "its trainings were over between the samples: 2 fell into their steps"),
        (idle_use(memory_used_bytes=None), "its memory in use was not read"),
        (
            case_use(utilization_gpu_percent=spread(0.0, 0.0, 0.0), training_samples=1),
            "its trainings were over between the samples: 1 fell into their steps",
        ),
    ],
)
def test_what_may_have_been_missed_is_unknown(use: Any, words: str) -> None:
    result = judged(second(use))
    assert result.status is Status.UNKNOWN
    assert words in reason(result)


def test_where_no_gpu_was_seen_to_compute_the_memory_says_that_they_work() -> None:
    quick = case_use(utilization_gpu_percent=None)
    both = sampling(2, *(sampled_gpu(index, cases=(quick,)) for index in range(2)))
    assert judged(both).status is Status.PASS


def test_where_the_others_hardly_compute_the_memory_says_it_too() -> None:
    hardly, never = case_use(utilization_gpu_percent=LITTLE), case_use(utilization_gpu_percent=spread(0.0, 0.0, 0.0))
    result = judged(sampling(2, sampled_gpu(0, cases=(hardly,)), sampled_gpu(1, cases=(never,))))
    assert (result.status, len(result.evidence)) == (Status.PASS, 2)
    assert result.evidence[1].observed == (
        "memory in use up by 596 MiB, 1 compute process (12 samples in 1 training; too little work to show in its "
        "utilisation)"
    )


def test_a_gpu_that_others_used_before_proves_nothing_by_what_did_not_rise() -> None:
    theirs = spread(30.0 * GIB, 30.0 * GIB, 30.0 * GIB)
    busy = GpuUse(samples=6, memory_used_bytes=theirs, processes=spread(1.0, 1.0, 1.0))
    use = idle_use(memory_used_bytes=theirs, processes=spread(1.0, 1.0, 1.0))
    result = judged(second(use, before=busy))
    assert "others used it before the trainings" in reason(result)
    assert result.status is Status.UNKNOWN


def test_without_samples_from_before_what_the_driver_said_earlier_counts() -> None:
    assert judged(second(case_use(), before=GpuUse())).status is Status.PASS
    assert judged(second(idle_use(), before=GpuUse())).status is Status.FAIL
    earlier = gpus(2, gpu(0), gpu(1, memory_used_bytes=None, processes=None))
    assert judged(second(idle_use(), before=GpuUse()), earlier).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"during": GpuUse(), "cases": (), "errors": {"handle": "NVML_ERROR_GPU_IS_LOST"}}, "NVML_ERROR_GPU_IS_LOST"),
        ({"during": GpuUse(), "cases": (), "hangs": "power_draw_w"}, "NVML's call for power_draw_w did not return"),
        ({"during": GpuUse(), "cases": ()}, "the trainings were over before the first sample"),
        ({"cases": ()}, "its trainings were over between the samples: 0 fell into their steps"),
    ],
)
def test_a_gpu_without_samples_is_unknown_and_condemns_no_other(changes: Any, words: str) -> None:
    result = judged(sampling(2, sampled_gpu(0), sampled_gpu(1, **changes)))
    assert (result.status, [item.subject for item in result.evidence]) == (Status.UNKNOWN, [f"GPU 0 ({bus_id(0)})"])
    assert words in reason(result)


def test_trainings_on_cpu_devices_are_no_subject() -> None:
    none = GpuSampling(state="not-started", error="the trainings ran on logical CPU devices")
    assert (judged(none).status, judged(none).reason) == (Status.SKIP, "the trainings ran on logical CPU devices")


@pytest.mark.parametrize(
    "facts",
    [
        GpuSampling(state="library-absent", error="NVML_ERROR_LIBRARY_NOT_FOUND: libnvidia-ml.so.1"),
        GpuSampling(state="failed", error="the sampling process died of SIGKILL"),
        GpuSampling(state="ready"),
        SmokeRuns(),
        smoke_run("smoke.baseline", 2, smoke_case(replicas=2, outcome="raised")),
        smoke_run("smoke.baseline", 2, smoke_case(replicas=2), gpus_seen=None),
        smoke_run("smoke.baseline", 2, smoke_case(replicas=2), gpus_seen=3),
        smoke_run("smoke.baseline", 2, smoke_case(replicas=2, kind="CPU")),
    ],
)
def test_what_was_not_sampled_or_not_trained_is_unknown(facts: FactGroup) -> None:
    assert judged(facts).status is Status.UNKNOWN


def subjects(*facts: FactGroup, replicas: int = 1, **case: Any) -> list[str]:
    """The GPUs that are judged, of four."""
    run = smoke_run("smoke.baseline", replicas, smoke_case(replicas=replicas, **case))
    result = compute_check(gpus_worked, sampling(4), run, gpus(4), environment(), *facts)
    return [item.subject.partition(" (")[0] for item in result.evidence]


def test_a_mask_is_read_as_cuda_reads_it() -> None:
    assert subjects(environment(CUDA_VISIBLE_DEVICES="2")) == ["GPU 2"]
    assert subjects(environment(CUDA_VISIBLE_DEVICES="3,1"), replicas=2) == ["GPU 1", "GPU 3"]
    uuid = gpu(3).uuid or ""
    assert subjects(environment(CUDA_VISIBLE_DEVICES=uuid)) == ["GPU 3"]


def test_unequal_gpus_have_their_places_by_pci_order_by_uuids_or_not_at_all() -> None:
    unequal = gpus(4, *(gpu(index, name=f"model {index}") for index in range(4)))
    one = environment(CUDA_VISIBLE_DEVICES="2")
    assert subjects(unequal, one) == []
    assert subjects(unequal, environment(CUDA_VISIBLE_DEVICES="2", CUDA_DEVICE_ORDER="PCI_BUS_ID")) == ["GPU 2"]
    assert subjects(unequal, environment(CUDA_VISIBLE_DEVICES=gpu(2).uuid or "")) == ["GPU 2"]
    # All of them are all of them, in whatever order.
    assert subjects(unequal, replicas=4) == ["GPU 0", "GPU 1", "GPU 2", "GPU 3"]


def test_what_cuda_told_of_the_addresses_counts_more_than_its_order() -> None:
    unequal = gpus(4, *(gpu(index, name=f"model {index}") for index in range(4)))
    assert subjects(unequal, bus_ids=(bus_id(3),)) == ["GPU 3"]


def test_a_mapping_that_is_not_known_is_unknown() -> None:
    result = judged(environment(CUDA_VISIBLE_DEVICES="MIG-1234"), smoke_run(replicas=1))
    assert result.status is Status.UNKNOWN
    assert "MIG instances are not read" in reason(result)


def test_the_whole_run_of_a_gpu_is_no_evidence_of_a_case() -> None:
    """It was busy with something else, when another case ran."""
    other = case_use("own-model", "smoke.own-model")
    result = judged(sampling(2, sampled_gpu(0), sampled_gpu(1, cases=(other,), during=gpu_use())))
    assert result.status is Status.UNKNOWN
    assert result.evidence[0].observed.startswith("utilisation up to 90 %")
