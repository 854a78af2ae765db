"""The limits of the checks of a watched training, and the numbers and names that they state."""

from dataclasses import replace
from typing import Any

from helpers.cases import cases
from helpers.kdoctor_watch.facts import watched
from helpers.saying import briefs, said
from kdoctor.facts import GpuSampling, GpuSeries, GpuUse, SampledGpu
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_watch.checks.watch.finite import finite
from kdoctor_watch.checks.watch.gpus_busy import gpus_busy
from kdoctor_watch.checks.watch.input import input_pipeline
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

MIB = 2**20
DIFFERENCE = ReplicaDifference(
    variable="dense/kernel", replica=1, device="/device:GPU:1", other=0, step=300, equal_at=200, values=3, of=64,
    largest=0.25,
)  # fmt: skip


def rising(first: int, last: int, number: int = 8) -> tuple[int, ...]:
    """Uses of memory that rise in equal steps from the middle on: the second half begins after ``number // 2``."""
    half = number // 2
    return (first,) * (number - half - 1) + tuple(first + (last - first) * place // half for place in range(half + 1))


@cases(
    (rising(1000 * MIB, 1256 * MIB), Status.FAIL),  # 256 MiB, which is more than 10 % of 1000 MiB
    (rising(1000 * MIB, 1256 * MIB - 4), Status.PASS),
    (rising(4000 * MIB, 4400 * MIB), Status.FAIL),  # 10 %
    (rising(4000 * MIB, 4400 * MIB - 4), Status.PASS),
    ((*rising(1000 * MIB, 2000 * MIB)[:-1], 1750 * MIB), Status.PASS),  # it did not rise in the last period
    ((1000 * MIB, 1250 * MIB, 1000 * MIB, *rising(1000 * MIB, 2000 * MIB)[3:]), Status.FAIL),  # the first half
)
def test_memory_that_rises_in_each_period_of_the_second_half_fails(lows: tuple[int, ...], status: Status) -> None:
    use = WatchedMemory(name="GPU:0", every_s=60, lows=lows)
    assert compute_check(memory, watched(memory=(use,))).status is status


def test_growing_memory_states_both_ends_and_the_periods() -> None:
    use = WatchedMemory(name="GPU:0", every_s=60, lows=rising(1024 * MIB, 2048 * MIB))
    text = said(compute_check(memory, watched(memory=(use,))))["GPU:0"]
    assert "1024 MiB in use after half" in text
    assert "2048 MiB at its end" in text
    assert "each of 4 periods of 60 s" in text
    short = WatchedMemory(name="GPU:0", every_s=60, lows=(MIB,) * 7)
    assert "less than 480 s" in said(compute_check(memory, watched(memory=(short,))))["GPU:0"]


@cases(
    ({}, ("3 of 64 values differ from replica 0", "by at most 0.25", "step 300", "equal after step 200")),
    ({"values": 1, "of": 1}, ("1 of 1 value differs",)),
    ({"values": 1, "largest": None}, ("1 of 64 values differs from replica 0, found",)),
    ({"values": None}, ("a value differ",)),
    ({"of": 0}, ("a value differ",)),
    ({"equal_at": None}, ("never compared before",)),
)
def test_difference_between_replicas_is_described(changes: dict[str, Any], parts: tuple[str, ...]) -> None:
    replicas = replace(watched().replicas, differences=(replace(DIFFERENCE, **changes),))
    text = said(compute_check(replicas_equal, watched(replicas=replicas)))["dense/kernel on replica 1 (GPU:1)"]
    assert [part for part in parts if part in text] == list(parts)


def test_equal_replicas_are_counted() -> None:
    replicas = replace(watched().replicas, replicas=2, variables=20, checks=1, last_step=99)
    result = compute_check(replicas_equal, watched(replicas=replicas))
    assert said(result)["replicas"] == "20 variables on 2 replicas equal in 1 comparison, the last one after step 99"
    assert briefs(result) == ["2 replicas equal"]


def stalled(**changes: Any) -> str:
    steps = replace(watched().steps, stalls=(Stall(**{"step": 7, "seconds": 130.0, **changes}),))
    return said(compute_check(stall, watched(steps=steps)))["step 7"]


def test_stall_that_ended_is_not_located() -> None:
    assert stalled(ended=False, where="train.py:3") == "took 130.0 s and has not ended; it is at train.py:3"
    assert stalled(ended=True, where="train.py:3") == "took 130.0 s"
    assert stalled(ended=False, where="") == "took 130.0 s and has not ended"


def test_two_steps_without_a_stall_pass() -> None:
    assert compute_check(stall, watched(steps=WatchedSteps(steps=2))).status is Status.PASS


def test_step_times_are_in_milliseconds() -> None:
    steps = replace(watched().steps, baseline_s=0.1, recent_s=0.12, slowest_s=0.15)
    result = compute_check(step_time, watched(steps=steps))
    assert said(result)["steps"] == "120 ms per step, 100 ms at the beginning"
    assert briefs(result) == ["120 ms per step"]
    slow = compute_check(step_time, watched(steps=replace(steps, slowest_s=0.2, slowest_at=400)))
    assert said(slow)["steps"] == "200 ms per step around step 400, 100 ms at the beginning (2.00 times)"
    quarter = replace(steps, baseline_s=0.125, slowest_s=0.1875)  # exact in binary, so exactly 1.5 times
    assert compute_check(step_time, watched(steps=quarter)).status is Status.PASS


@cases(
    (WatchedValues(logs=("loss",), steps=1), "finite: loss in 1 step"),
    (WatchedValues(steps=5, variables=1), "finite: 1 variable"),
    (WatchedValues(steps=5, gradients=5), "finite: gradients in 5 steps"),
    (
        WatchedValues(logs=("loss",), steps=5, gradients=4, variables=2),
        "finite: loss in 5 steps, gradients in 4 steps, 2 variables",
    ),
)
def test_finite_values_are_counted(values: WatchedValues, text: str) -> None:
    assert said(compute_check(finite, watched(values=values)))["values"] == text


def test_variables_of_one_look_are_described_by_the_first() -> None:
    bad = (
        NotFinite(kind="variable", name="a", step=100, finite_at=50, replica=0),
        NotFinite(kind="variable", name="b", step=100, finite_at=None),
        NotFinite(kind="log", name="loss", step=101),
    )
    found = said(compute_check(finite, watched(values=WatchedValues(steps=200, not_finite=bad))))
    assert found == {
        "loss": "NaN or infinite after step 101 (never finite before)",
        "variables after step 100": "2 variables: a, b: NaN or infinite on replica 0 after step 100 "
        "(last finite after step 50)",
    }


def gpus(*points: float | None) -> GpuSampling:
    gpu = SampledGpu(
        index=0, name="NVIDIA H100", bus_id=watched(1).bus_ids[0], during=GpuUse(samples=100), longest_gap_s=2.0,
        series=GpuSeries(every_s=2.0, utilization_gpu_percent=points),
    )  # fmt: skip
    return GpuSampling(state="ready", interval_s=2.0, seconds=200, gpus=(gpu,))


@cases(
    ((10.0,) * 5, Status.PASS, "10 % in the newest 10 s"),
    ((9.0,) * 5, Status.FAIL, "9 % in the newest 10 s"),
    ((50.0,) * 4, Status.UNKNOWN, "read 4 times; 5 are needed"),
    ((None, *[50.0] * 4), Status.UNKNOWN, "read 4 times; 5 are needed"),
    ((*[100.0] * 30, *[0.0] * 10), Status.FAIL, "0 % in the newest 20 s"),  # a quarter of 40 samples
    ((*[0.0] * 30, *[100.0] * 10), Status.PASS, "100 % in the newest 20 s"),
    ((*[0.0] * 3, *[100.0] * 5), Status.PASS, "100 % in the newest 10 s"),  # at least 5
)
def test_newest_quarter_of_the_samples_counts(points: tuple[float | None, ...], status: Status, text: str) -> None:
    result = compute_check(gpus_busy, watched(1), gpus(*points))
    assert result.status is status
    (only,) = said(result).values()
    assert text in only


def test_training_on_the_cpu_has_no_gpus_to_judge() -> None:
    result = compute_check(gpus_busy, watched(devices=("/device:CPU:0",)), gpus())
    assert result.reason == "the job trains on the CPU"


@cases(
    (WatchedInput(looks=100, empty=20), Status.PASS),
    (WatchedInput(looks=100, empty=21), Status.FAIL),
    (WatchedInput(looks=10), Status.PASS),
)
def test_input_that_is_empty_at_a_fifth_of_the_looks_passes(seen: WatchedInput, status: Status) -> None:
    assert compute_check(input_pipeline, watched(input=seen)).status is status


def test_steps_and_stalls_are_stated_in_their_units() -> None:
    timed = WatchedSteps(steps=9, timed=9, baseline_s=10.0, recent_s=20.0, slowest_s=40.0, slowest_at=4)
    stated = said(compute_check(step_time, watched(steps=timed)))["steps"]
    assert stated.startswith("4e+04 ms per step around step 4, 1e+04 ms at the beginning (4.00 times)")
    for after, expected in ((120.0, "less than 120 s"), (None, "steps of usual length")):
        stalled = replace(timed, stalls=(Stall(step=3, seconds=130.0, ended=True),), stall_after_s=after)
        assert compute_check(stall, watched(steps=stalled)).findings[0].finding.expected == expected


def test_reason_of_missing_samples_is_stated() -> None:
    for error, reason in (("it hung", "NVML: it hung"), (None, "NVML: failed")):
        silent = GpuSampling(state="failed", error=error, interval_s=1.0, seconds=0.0)
        assert [item.reason for item in compute_check(gpus_busy, watched(), silent).unjudged] == [reason]


@cases(
    (2.0, 10.0, "2 of 10 s were spent waiting for batches (20%)"),
    (2.0, 0.0, "no batch was ready before 5 of 100 steps (5%)"),
    (None, 10.0, "no batch was ready before 5 of 100 steps (5%)"),
    (0.0, 10.0, "0 of 10 s were spent waiting for batches (0%)"),
)
def test_waiting_is_measured_in_seconds_if_they_are_known(waited: float | None, seconds: float, stated: str) -> None:
    seen = WatchedInput(looks=100, empty=5, waited_s=waited, seconds=seconds)
    assert said(compute_check(input_pipeline, watched(input=seen))) == {"input": stated}
