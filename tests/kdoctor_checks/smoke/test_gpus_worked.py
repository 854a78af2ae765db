from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import (
    GIB,
    MIB,
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
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, GpuSampling, GpuUse, SmokeRuns, Weights
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.gpus_worked import gpus_worked

NO_SPREAD: dict[str, Any] = {"memory_used_bytes": None, "processes": None}
LITTLE = spread(0.0, 0.5, 2.0)


def judge(*facts: FactGroup) -> Result:
    return compute_check(gpus_worked, sampling(2), smoke_run(replicas=2), gpus(2), environment(), *facts)


def second(use: Any, **changes: Any) -> GpuSampling:
    """Two GPUs. The second has the given use."""
    return sampling(2, sampled_gpu(0), sampled_gpu(1, cases=(use,), **changes))


def reason(result: Result) -> str:
    return result.reason or ""


def test_busy_gpus_pass() -> None:
    result = judge()
    assert (result.status, result.severity) == (Status.PASS, Severity.WARNING)
    assert [item.subject for item in result.evidence] == [f"GPU {index} ({bus_id(index)})" for index in range(2)]
    for part in ("90 %", "596 MiB", "1 compute process", "12 samples in 1 training"):
        assert part in result.evidence[0].observed


def test_idle_gpu_fails() -> None:
    result = judge(second(idle_use()))
    assert result.status is Status.FAIL
    (found,) = result.findings
    assert found.finding.subject == f"GPU 1 ({bus_id(1)})"
    assert "12 samples in 1 training" in found.finding.observed
    assert "40 %" in found.finding.observed


def test_gpu_with_memory_but_without_utilization_fails() -> None:
    result = judge(second(case_use(utilization_gpu_percent=spread(0.0, 0.0, 0.0))))
    assert result.status is Status.FAIL
    assert result.findings[0].finding.observed.startswith("memory in use up by 596 MiB, 1 compute process")


def test_model_outside_the_scope_may_train_on_one_gpu() -> None:
    """The failure path: the strategy has replicas on both GPUs, but the model's variables are on one."""
    outside = smoke_case(replicas=2, weights=Weights(variables=4, mirrored=0, nonfinite=(), replicas_agree=None))
    run = smoke_run("smoke.baseline", 2, outside)
    assert judge(second(case_use(utilization_gpu_percent=spread(0.0, 0.0, 0.0))), run).status is Status.PASS


@pytest.mark.parametrize(
    ("use", "decisive"),
    [
        (idle_use(training_samples=2), "2 samples"),
        (idle_use(memory_used_bytes=None), "memory"),
        (
            case_use(utilization_gpu_percent=spread(0.0, 0.0, 0.0), training_samples=1),
            "1 sample ",
        ),
    ],
)
def test_work_that_samples_may_have_missed_is_unknown(use: Any, decisive: str) -> None:
    result = judge(second(use))
    assert result.status is Status.UNKNOWN
    assert decisive in reason(result)


def test_memory_is_enough_if_no_gpu_has_utilization() -> None:
    quick = case_use(utilization_gpu_percent=None)
    both = sampling(2, *(sampled_gpu(index, cases=(quick,)) for index in range(2)))
    assert judge(both).status is Status.PASS


def test_memory_is_enough_if_other_gpus_have_little_utilization() -> None:
    hardly, never = case_use(utilization_gpu_percent=LITTLE), case_use(utilization_gpu_percent=spread(0.0, 0.0, 0.0))
    result = judge(sampling(2, sampled_gpu(0, cases=(hardly,)), sampled_gpu(1, cases=(never,))))
    assert (result.status, len(result.evidence)) == (Status.PASS, 2)
    assert result.evidence[1].observed.startswith("memory in use up by 596 MiB, 1 compute process (12 samples")


def test_gpu_used_by_other_processes_is_unknown() -> None:
    theirs = spread(30.0 * GIB, 30.0 * GIB, 30.0 * GIB)
    busy = GpuUse(samples=6, memory_used_bytes=theirs, processes=spread(1.0, 1.0, 1.0))
    use = idle_use(memory_used_bytes=theirs, processes=spread(1.0, 1.0, 1.0))
    result = judge(second(use, before=busy))
    assert "other processes" in reason(result)
    assert result.status is Status.UNKNOWN


def test_gpu_probe_replaces_missing_samples_from_before() -> None:
    assert judge(second(case_use(), before=GpuUse())).status is Status.PASS
    assert judge(second(idle_use(), before=GpuUse())).status is Status.FAIL
    earlier = gpus(2, gpu(0), gpu(1, memory_used_bytes=None, processes=None))
    assert judge(second(idle_use(), before=GpuUse()), earlier).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("changes", "decisive"),
    [
        ({"during": GpuUse(), "cases": (), "errors": {"handle": "NVML_ERROR_GPU_IS_LOST"}}, "NVML_ERROR_GPU_IS_LOST"),
        ({"during": GpuUse(), "cases": (), "hangs": "power_draw_w"}, "power_draw_w"),
        ({"during": GpuUse(), "cases": ()}, "first sample"),
        ({"cases": ()}, "0 samples"),
    ],
)
def test_gpu_without_samples_is_unknown_and_others_are_judged(changes: Any, decisive: str) -> None:
    result = judge(sampling(2, sampled_gpu(0), sampled_gpu(1, **changes)))
    assert (result.status, [item.subject for item in result.evidence]) == (Status.UNKNOWN, [f"GPU 0 ({bus_id(0)})"])
    assert decisive in reason(result)


def test_trainings_on_cpu_devices_are_skipped() -> None:
    none = GpuSampling(state="not-started", error="the trainings ran on logical CPU devices")
    assert (judge(none).status, judge(none).reason) == (Status.SKIP, "the trainings ran on logical CPU devices")


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
def test_missing_samples_or_trainings_are_unknown(facts: FactGroup) -> None:
    assert judge(facts).status is Status.UNKNOWN


def subjects(*facts: FactGroup, replicas: int = 1, **case: Any) -> list[str]:
    """The GPUs that are judged, of four."""
    run = smoke_run("smoke.baseline", replicas, smoke_case(replicas=replicas, **case))
    result = compute_check(gpus_worked, sampling(4), run, gpus(4), environment(), *facts)
    return [item.subject.partition(" (")[0] for item in result.evidence]


def test_visible_devices_are_read_like_cuda() -> None:
    assert subjects(environment(CUDA_VISIBLE_DEVICES="2")) == ["GPU 2"]
    assert subjects(environment(CUDA_VISIBLE_DEVICES="3,1"), replicas=2) == ["GPU 1", "GPU 3"]
    uuid = gpu(3).uuid or ""
    assert subjects(environment(CUDA_VISIBLE_DEVICES=uuid)) == ["GPU 3"]


def test_unequal_gpus_need_pci_order_or_uuids() -> None:
    unequal = gpus(4, *(gpu(index, name=f"model {index}") for index in range(4)))
    one = environment(CUDA_VISIBLE_DEVICES="2")
    assert subjects(unequal, one) == []
    assert subjects(unequal, environment(CUDA_VISIBLE_DEVICES="2", CUDA_DEVICE_ORDER="PCI_BUS_ID")) == ["GPU 2"]
    assert subjects(unequal, environment(CUDA_VISIBLE_DEVICES=gpu(2).uuid or "")) == ["GPU 2"]
    # All GPUs are used, in any order.
    assert subjects(unequal, replicas=4) == ["GPU 0", "GPU 1", "GPU 2", "GPU 3"]


def test_addresses_from_cuda_win_over_its_order() -> None:
    unequal = gpus(4, *(gpu(index, name=f"model {index}") for index in range(4)))
    assert subjects(unequal, bus_ids=(bus_id(3),)) == ["GPU 3"]


def test_unknown_mapping_is_unknown() -> None:
    result = judge(environment(CUDA_VISIBLE_DEVICES="MIG-1234"), smoke_run(replicas=1))
    assert result.status is Status.UNKNOWN
    assert "MIG" in reason(result)


def test_samples_of_other_cases_are_not_evidence() -> None:
    """The GPU was busy, but in another case."""
    other = case_use("own-model", "smoke.own-model")
    result = judge(sampling(2, sampled_gpu(0), sampled_gpu(1, cases=(other,), during=gpu_use())))
    assert result.status is Status.UNKNOWN
    assert result.evidence[0].observed.startswith("utilization up to 90 %")


def test_three_samples_of_training_steps_show_that_a_gpu_is_idle() -> None:
    assert judge(second(idle_use(training_samples=3))).status is Status.FAIL


@pytest.mark.parametrize(
    ("memory", "processes", "status"),
    [(2.0 * GIB, 0.0, Status.FAIL), (2.1 * GIB, 0.0, Status.UNKNOWN), (2.0 * GIB, 1.0, Status.UNKNOWN)],
)
def test_memory_of_an_idle_gpu_has_a_limit(memory: float, processes: float, status: Status) -> None:
    held, running = spread(memory, memory, memory), spread(processes, processes, processes)
    before = GpuUse(samples=6, memory_used_bytes=held, processes=running)
    assert judge(second(idle_use(memory_used_bytes=held, processes=running), before=before)).status is status


def test_gpu_that_was_busy_in_one_of_its_trainings_passes() -> None:
    cases = smoke_case(replicas=2), smoke_case("fit", 2)
    both = sampling(2, *(sampled_gpu(index, cases=(case_use(), idle_use(case="fit"))) for index in range(2)))
    result = judge(both, smoke_run("smoke.baseline", 2, *cases))
    assert result.status is Status.PASS
    assert result.evidence[0].observed.startswith("utilization up to 90 %")
    assert "24 samples in 2 trainings" in result.evidence[0].observed


def test_little_utilization_counts_if_it_was_not_read_before() -> None:
    unread = gpus(2, gpu(0), gpu(1, utilization_gpu_percent=None))
    little = idle_use(utilization_gpu_percent=spread(0.0, 0.1, 1.0))
    result = judge(second(little, before=GpuUse()), unread)
    assert result.status is Status.PASS
    assert result.evidence[1].observed.startswith("utilization up to 1 % (")


def test_gpu_that_trained_and_was_not_sampled_is_unknown() -> None:
    result = judge(sampling(1))
    assert [(item.subject, item.reason) for item in result.unjudged] == [(f"GPU 1 ({bus_id(1)})", "it was not sampled")]


@pytest.mark.parametrize(("mib", "status"), [(64, Status.PASS), (63, Status.FAIL)])
def test_memory_of_a_context_shows_work_if_no_gpu_has_utilization(mib: int, status: Status) -> None:
    held = spread(4.0 * MIB, 4.0 * MIB, (4.0 + mib) * MIB)
    use = idle_use(memory_used_bytes=held)
    both = sampling(2, *(sampled_gpu(index, cases=(use,)) for index in range(2)))
    assert judge(both).status is status


@pytest.mark.parametrize(
    ("mean", "samples", "status"),
    [(10.0, 3, Status.FAIL), (9.9, 3, Status.PASS), (10.0, 2, Status.PASS)],
)
def test_gpu_without_utilization_is_compared_with_a_busy_one(mean: float, samples: int, status: Status) -> None:
    busy = case_use(utilization_gpu_percent=spread(0.0, mean, 90.0), training_samples=samples)
    never = case_use(utilization_gpu_percent=spread(0.0, 0.0, 0.0))
    result = judge(sampling(2, sampled_gpu(0, cases=(busy,)), sampled_gpu(1, cases=(never,))))
    assert result.status is status
    assert "too little work" not in result.evidence[0].observed
    if status is Status.PASS:
        assert result.evidence[1].observed.endswith("; too little work to show in the utilization)")


def test_busiest_other_gpu_is_stated() -> None:
    means = {0: 20.0, 1: 60.0, 2: 30.0}
    others = [
        sampled_gpu(index, cases=(case_use(utilization_gpu_percent=spread(0.0, mean, 90.0)),))
        for index, mean in means.items()
    ]
    run = smoke_run("smoke.baseline", 4, smoke_case(replicas=4))
    (found,) = judge(sampling(4, *others, sampled_gpu(3, cases=(idle_use(),))), run, gpus(4)).findings
    assert found.finding.observed.endswith(", while another GPU was busy for 60 % of the time")


def test_idle_gpu_without_a_busy_one_is_stated_alone() -> None:
    run = smoke_run("smoke.baseline", 1, smoke_case(replicas=1))
    (found,) = judge(sampling(1, sampled_gpu(0, cases=(idle_use(),))), run, gpus(1)).findings
    assert found.finding.observed == ("memory in use, processes and utilization never rose in 12 samples in 1 training")
