from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import (
    bus_id,
    case_use,
    environment,
    event,
    gpu_use,
    gpus,
    sampled_gpu,
    sampling,
    smoke_case,
    smoke_run,
    spread,
)
from kdoctor.engine.report import Result
from kdoctor.facts import EventTime, FactGroup, GpuSampling, GpuUse, SmokeRuns
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.gpus_unslowed import gpus_unslowed


def judge(*facts: FactGroup) -> Result:
    return compute_check(gpus_unslowed, sampling(2), smoke_run(replicas=2), gpus(2), environment(), *facts)


def second(*events: EventTime, **changes: Any) -> GpuSampling:
    """Two GPUs. The second has the given clock event reasons."""
    values: dict[str, Any] = {"during": gpu_use(events=events), **changes}
    return sampling(2, sampled_gpu(0), sampled_gpu(1, **values))


def test_cool_gpus_pass_with_their_state() -> None:
    result = judge()
    assert (result.status, result.severity) == (Status.PASS, Severity.WARNING)
    for part in ("12 samples", "45 C", "310 of 700 W", "345 to 1980 of 1980 MHz"):
        assert part in result.evidence[0].observed


@pytest.mark.parametrize(
    ("bit", "in_a_row", "status"),
    [
        (0x40, 1, Status.FAIL),  # heat, reported by the hardware
        (0x80, 1, Status.FAIL),  # the power brake
        (0x08, 1, Status.PASS),  # the common flag may be set for a moment
        (0x08, 2, Status.FAIL),
        (0x20, 1, Status.PASS),
        (0x20, 2, Status.FAIL),
        (0x04, 9, Status.PASS),  # the power limit
        (0x01, 9, Status.PASS),  # idle
        (0x02, 9, Status.PASS),  # application clocks
        (0x100, 9, Status.PASS),
    ],
)
def test_reasons_that_slow_down_fail(bit: int, in_a_row: int, status: Status) -> None:
    assert judge(second(event(bit, 4.5, 9, in_a_row))).status is status


def test_finding_has_durations_cases_and_temperature() -> None:
    hot = {"temperature_c": spread(41.0, 70.0, 88.0), "clock_sm_mhz": spread(345.0, 900.0, 1980.0)}
    cases = (case_use(), case_use("fit", events=(event(0x40),)))
    facts = second(
        during=gpu_use(events=(event(0x08, 3.5), event(0x40, 3.0)), **hot), cases=cases, temperature_slowdown_c=87
    )
    (found,) = judge(facts).findings
    assert found.finding.subject == f"GPU 1 ({bus_id(1)})"
    assert found.finding.observed.startswith("HW Slowdown 3.5 s, HW Thermal Slowdown 3.0 s during smoke.baseline/fit, ")
    for part in ("88 C", "87", "310 of 700 W", "345 to 1980 of 1980 MHz"):
        assert part in found.finding.observed
    assert f"nvidia-smi -i {bus_id(1)}" in found.finding.remedy.look[0]


def test_power_limit_is_evidence() -> None:
    evidence = judge(second(event(0x04, 6.0))).evidence[1].observed
    assert evidence.endswith("; SW Power Cap 6.0 s")


@pytest.mark.parametrize(
    ("changes", "status", "decisive"),
    [
        (
            {"during": GpuUse(), "hangs": "temperature_c"},
            Status.UNKNOWN,
            "temperature_c",
        ),
        ({"hangs": "temperature_c"}, Status.UNKNOWN, "12 samples"),
        (
            {"during": GpuUse(), "errors": {"handle": "NVML_ERROR_GPU_IS_LOST"}},
            Status.UNKNOWN,
            "NVML_ERROR_GPU_IS_LOST",
        ),
        (
            {"during": gpu_use(events=()), "errors": {"clock_event_reasons": "NVML_ERROR_UNKNOWN"}},
            Status.UNKNOWN,
            "NVML_ERROR_UNKNOWN",
        ),
    ],
)
def test_unread_gpus_are_unknown(changes: Any, status: Status, decisive: str) -> None:
    result = judge(second(**changes))
    assert (result.status, len(result.evidence)) == (status, 1)
    assert decisive in (result.reason or "")


def test_gpus_without_clock_event_reasons_are_skipped() -> None:
    silent: dict[str, Any] = {
        "during": gpu_use(events=()),
        "errors": {"clock_event_reasons": "NVML_ERROR_NOT_SUPPORTED"},
    }
    result = judge(sampling(2, *(sampled_gpu(index, **silent) for index in range(2))))
    assert result.status is Status.SKIP


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (GpuSampling(state="not-started", error="no training was run"), Status.SKIP),
        (GpuSampling(state="driver-not-loaded", error="no driver"), Status.UNKNOWN),
        (GpuSampling(state="failed", error="the sampling process died of SIGSEGV"), Status.UNKNOWN),
        (GpuSampling(state="ready"), Status.UNKNOWN),
    ],
)
def test_nothing_passes_without_samples(facts: GpuSampling, status: Status) -> None:
    assert judge(facts).status is status


def test_unused_gpus_are_not_judged() -> None:
    run = smoke_run("smoke.baseline", 1, smoke_case(replicas=1))
    hot = second(event(0x40))
    assert judge(hot, run, environment(CUDA_VISIBLE_DEVICES="0")).status is Status.PASS
    assert judge(hot, run, environment(CUDA_VISIBLE_DEVICES="1")).status is Status.FAIL


@pytest.mark.parametrize("facts", [SmokeRuns(), environment(CUDA_VISIBLE_DEVICES="MIG-1234")])
def test_slowdown_fails_and_nothing_passes_if_the_used_gpus_are_unknown(facts: FactGroup) -> None:
    assert judge(second(event(0x40)), facts).status is Status.FAIL
    assert (judge(facts).status, judge(facts).evidence) == (Status.UNKNOWN, ())


UNREAD: dict[str, Any] = {"temperature_c": None, "power_draw_w": None, "clock_sm_mhz": None}


@pytest.mark.parametrize(
    ("during", "changes", "stated"),
    [
        ({}, {}, "no slowdown in 12 samples, at most 45 C, 310 of 700 W, SM clock 345 to 1980 of 1980 MHz"),
        (UNREAD, {}, "no slowdown in 12 samples"),
        ({**UNREAD, "samples": 1}, {}, "no slowdown in 1 sample"),
        (
            {},
            {"enforced_power_limit_w": None, "clock_sm_max_mhz": None, "temperature_slowdown_c": 87},
            "no slowdown in 12 samples, at most 45 C (slowdown at 87 C), 310 W, SM clock 345 to 1980 MHz",
        ),
    ],
)
def test_state_is_stated_as_far_as_it_was_read(during: Any, changes: Any, stated: str) -> None:
    assert judge(second(during=gpu_use(**during), **changes)).evidence[1].observed == stated


def test_reason_without_a_name_is_stated_by_its_number() -> None:
    assert judge(second(event(0x1000, 1.25))).evidence[1].observed.endswith("; reason 0x1000 1.2 s")


@pytest.mark.parametrize(
    ("names", "stated"),
    [
        ((), "HW Thermal Slowdown 2.0 s, at most"),
        (("a",), "HW Thermal Slowdown 2.0 s during smoke.baseline/a, at most"),
        (("a", "b", "c"), "HW Thermal Slowdown 2.0 s during smoke.baseline/a, smoke.baseline/b and 1 more, at most"),
    ],
)
def test_trainings_that_were_slowed_down_are_named(names: tuple[str, ...], stated: str) -> None:
    slowed = tuple(case_use(name, events=(event(0x01), event(0x40))) for name in names)
    facts = second(during=gpu_use(events=(event(0x40),)), cases=(case_use("cool"), *slowed))
    result = judge(facts, smoke_run("smoke.baseline", 2, smoke_case("cool", 2)))
    assert result.findings[0].finding.observed.startswith(stated)


def test_gpu_that_trained_and_was_not_sampled_is_unknown() -> None:
    result = judge(sampling(1))
    assert [item.subject for item in result.evidence] == [f"GPU 0 ({bus_id(0)})"]
    assert [(item.subject, item.reason) for item in result.unjudged] == [(f"GPU 1 ({bus_id(1)})", "it was not sampled")]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (SmokeRuns(), "no training on GPUs finished"),
        (
            smoke_run("smoke.baseline", 2, smoke_case(replicas=2), gpus_seen=3),
            "TensorFlow lists 3 GPUs, but 2 are visible",
        ),
    ],
)
def test_reason_why_the_used_gpus_are_unknown_is_stated(facts: FactGroup, reason: str) -> None:
    (unjudged,) = judge(facts).unjudged
    assert unjudged.reason == f"which of them trained is not known: {reason}"
