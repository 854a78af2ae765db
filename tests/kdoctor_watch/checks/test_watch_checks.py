"""Each check of a watched training fails, passes, and is unknown without evidence."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import bus_id
from helpers.kdoctor_watch.facts import BUSY, watched
from kdoctor.engine.report import Result
from kdoctor.facts import EventTime, GpuSampling, GpuSeries, GpuUse, KernelLog, SampledGpu
from kdoctor.facts.gpus import EVENT_HW_THERMAL_SLOWDOWN
from kdoctor.model import Status
from kdoctor.probes.kernel_log import parse_log
from kdoctor.testing import compute_check
from kdoctor_watch.checks.watch.finite import finite
from kdoctor_watch.checks.watch.gpus_busy import gpus_busy
from kdoctor_watch.checks.watch.gpus_unslowed import gpus_unslowed
from kdoctor_watch.checks.watch.input import input_pipeline
from kdoctor_watch.checks.watch.kernel_log import kernel_log
from kdoctor_watch.checks.watch.memory import memory
from kdoctor_watch.checks.watch.replicas_equal import replicas_equal
from kdoctor_watch.checks.watch.stall import stall
from kdoctor_watch.checks.watch.step_time import step_time
from kdoctor_watch.facts import (
    NotFinite,
    ReplicaDifference,
    Stall,
    WatchedInput,
    WatchedMemory,
    WatchedSteps,
    WatchedValues,
)

GIB = 1024**3
ADDRESSES = (bus_id(0), bus_id(1))
DIFFERENCE = ReplicaDifference(
    variable="dense/kernel",
    replica=1,
    device="/device:GPU:1",
    other=0,
    step=300,
    equal_at=200,
    values=1,
    of=64,
    largest=1e-9,
)


def sampling(**changes: Any) -> GpuSampling:
    """Two busy GPUs."""
    use = GpuUse(samples=100)
    gpus = tuple(
        SampledGpu(index=index, name="NVIDIA H100", bus_id=address, during=use, series=BUSY, longest_gap_s=2.0)
        for index, address in enumerate(ADDRESSES)
    )
    return replace(GpuSampling(state="ready", interval_s=2.0, seconds=200, gpus=gpus), **changes)


def log(*lines: str) -> KernelLog:
    return parse_log(lines, source="/dev/kmsg", complete=False)


XID = "NVRM: Xid (PCI:0000:10:00): 79, pid=1, name=python, GPU has fallen off the bus."


def subjects(result: Result) -> list[str]:
    return [judged.finding.subject for judged in result.findings]


def test_healthy_training_passes_each_check() -> None:
    facts = (watched(), sampling(), log("usb 1-1: new device"))
    for check in (
        replicas_equal, finite, stall, step_time, input_pipeline, memory, gpus_busy, gpus_unslowed, kernel_log,
    ):  # fmt: skip
        result = compute_check(check, *facts)
        assert (check.id, result.status) == (check.id, Status.PASS)
        assert result.evidence


@cases(
    ({"differences": (DIFFERENCE,)}, Status.FAIL),
    ({"unavailable": "RuntimeError: no"}, Status.UNKNOWN),
    ({"checks": 0}, Status.UNKNOWN),
    ({"variables": 0}, Status.UNKNOWN),
    ({"replicas": 1, "variables": 0}, Status.SKIP),
)
def test_replicas(changes: dict[str, Any], status: Status) -> None:
    replicas = replace(watched().replicas, **changes)
    assert compute_check(replicas_equal, watched(replicas=replicas)).status is status


def test_replica_and_variable_are_named() -> None:
    replicas = replace(watched().replicas, differences=(DIFFERENCE,))
    result = compute_check(replicas_equal, watched(replicas=replicas))
    assert subjects(result) == ["dense/kernel on replica 1 (GPU:1)"]
    assert "after step 300 (equal after step 200)" in result.findings[0].finding.observed


def test_values_that_are_not_finite() -> None:
    bad = (
        NotFinite(kind="log", name="loss", step=17, finite_at=16),
        NotFinite(kind="gradient", name="dense/kernel", step=17, finite_at=16),
        NotFinite(kind="variable", name="dense/kernel", step=100, finite_at=0, replica=1),
        NotFinite(kind="variable", name="dense/bias", step=100, finite_at=0, replica=1),
        NotFinite(kind="variable", name="other", step=200, replica=0),
    )
    result = compute_check(finite, watched(values=WatchedValues(logs=("loss",), steps=1000, not_finite=bad)))
    assert result.status is Status.FAIL
    assert subjects(result) == ["loss", "gradient of dense/kernel", "variables after step 100", "variable other"]
    assert compute_check(finite, watched(values=WatchedValues())).status is Status.UNKNOWN


def test_stalls() -> None:
    steps = replace(watched().steps, stalls=(Stall(step=7, seconds=130.0, ended=False, where="train.py:3 in step"),))
    result = compute_check(stall, watched(steps=steps))
    assert (result.status, subjects(result)) == (Status.FAIL, ["step 7"])
    assert "train.py:3" in result.findings[0].finding.observed
    assert compute_check(stall, watched(steps=WatchedSteps(steps=1))).status is Status.UNKNOWN


@pytest.mark.parametrize(("slowest", "status"), [(0.15, Status.PASS), (0.151, Status.FAIL), (None, Status.UNKNOWN)])
def test_step_time(slowest: float | None, status: Status) -> None:
    steps = replace(watched().steps, slowest_s=slowest)
    assert compute_check(step_time, watched(steps=steps)).status is status
    if slowest == 0.15:
        assert compute_check(step_time, watched(steps=steps), factor=1.2).status is Status.FAIL


@cases(
    (WatchedInput(looks=10, empty=2), Status.PASS),
    (WatchedInput(looks=10, empty=3), Status.FAIL),
    (WatchedInput(looks=9), Status.UNKNOWN),
    (WatchedInput(waited_s=1.0, seconds=10.0), Status.PASS),
    (WatchedInput(waited_s=5.0, seconds=10.0), Status.FAIL),
    (WatchedInput(unavailable="not passed"), Status.UNKNOWN),
)
def test_input(seen: WatchedInput, status: Status) -> None:
    assert compute_check(input_pipeline, watched(input=seen)).status is status


@cases(
    ([GIB] * 8 + [2 * GIB] * 8, Status.PASS),  # grew once
    ([GIB * (4 + place) // 4 for place in range(16)], Status.FAIL),
    ([GIB + place for place in range(16)], Status.PASS),  # grows by bytes
    ([GIB * 64 + place * GIB // 4 for place in range(16)], Status.PASS),  # by less than 10 %
    ([GIB] * 7, Status.UNKNOWN),
)
def test_memory(lows: list[int], status: Status) -> None:
    use = WatchedMemory(name="GPU:0", every_s=60, lows=tuple(lows))
    assert compute_check(memory, watched(memory=(use,))).status is status


def test_memory_that_was_not_read_is_unknown() -> None:
    assert compute_check(memory, watched(memory=())).status is Status.UNKNOWN


def test_idle_gpu() -> None:
    first, second = sampling().gpus
    idle = replace(second, series=GpuSeries(every_s=2.0, utilization_gpu_percent=(*[95.0] * 30, *[2.0] * 11)))
    result = compute_check(gpus_busy, watched(), sampling(gpus=(first, idle)))
    assert (result.status, subjects(result)) == (Status.FAIL, ["GPU 1 (0000:20:00.0)"])


def test_gpu_of_another_job_does_not_count() -> None:
    first, second = sampling().gpus
    idle = replace(second, series=GpuSeries(every_s=2.0, utilization_gpu_percent=(0.0,) * 40))
    assert compute_check(gpus_busy, watched(1), sampling(gpus=(first, idle))).status is Status.PASS


def test_throttled_gpu() -> None:
    event = EventTime(bit=EVENT_HW_THERMAL_SLOWDOWN, seconds=20.0, samples=10, in_a_row=10)
    first, second = sampling().gpus
    hot = replace(first, during=GpuUse(samples=100, events=(event,)))
    result = compute_check(gpus_unslowed, watched(), sampling(gpus=(hot, second)))
    assert (result.status, subjects(result)) == (Status.FAIL, ["GPU 0 (0000:10:00.0)"])


@pytest.mark.parametrize("check", [gpus_busy, gpus_unslowed])
def test_gpus_that_were_not_sampled_are_unknown(check: Any) -> None:
    assert compute_check(check, watched(), sampling(state="library-absent", error="no")).status is Status.UNKNOWN
    assert compute_check(check, watched(bus_ids=()), sampling()).status is Status.UNKNOWN
    assert compute_check(check, watched(bus_ids=ADDRESSES[:1]), sampling()).status is Status.UNKNOWN
    assert compute_check(check, watched(), sampling(gpus=())).status is Status.UNKNOWN
    assert compute_check(check, watched(devices=("/device:CPU:0",)), sampling()).status is Status.SKIP


def test_too_few_samples_are_unknown() -> None:
    few = tuple(
        replace(gpu, series=GpuSeries(every_s=2.0, utilization_gpu_percent=(0.0, None))) for gpu in sampling().gpus
    )
    assert compute_check(gpus_busy, watched(), sampling(gpus=few)).status is Status.UNKNOWN


def test_xid_of_the_time_of_the_training() -> None:
    result = compute_check(kernel_log, watched(), log(XID))
    assert (result.status, subjects(result)) == (Status.FAIL, ["GPU at 0000:10:00.0"])
    assert "79" in result.findings[0].finding.observed
    unread = compute_check(kernel_log, watched(), missing={KernelLog: "no permission"})
    assert unread.status is Status.UNKNOWN
    assert compute_check(kernel_log, watched(devices=()), log(XID)).status is Status.SKIP
