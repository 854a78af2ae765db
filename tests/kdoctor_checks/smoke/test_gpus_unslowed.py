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
from helpers.judging import compute_check
from kdoctor.engine.report import Result
from kdoctor.facts import EventTime, FactGroup, GpuSampling, GpuUse, SmokeRuns
from kdoctor.model import Severity, Status
from kdoctor_checks.smoke.gpus_unslowed import gpus_unslowed


def judged(*facts: FactGroup) -> Result:
    return compute_check(gpus_unslowed, sampling(2), smoke_run(replicas=2), gpus(2), environment(), *facts)


def second(*events: EventTime, **changes: Any) -> GpuSampling:
    """Two GPUs of which the second had these reasons."""
    values: dict[str, Any] = {"during": gpu_use(events=events), **changes}
    return sampling(2, sampled_gpu(0), sampled_gpu(1, **values))


def test_cool_gpus_pass_with_what_they_did() -> None:
    result = judged()
    assert (result.status, result.severity) == (Status.PASS, Severity.WARNING)
    assert result.evidence[0].observed == (
        "no slowdown in 12 samples, at most 45 degrees C, 310 of 700 W, SM clock 345 to 1980 of 1980 MHz"
    )


@pytest.mark.parametrize(
    ("bit", "in_a_row", "status"),
    [
        (0x40, 1, Status.FAIL),  # heat, as the hardware sees it
        (0x80, 1, Status.FAIL),  # the power brake
        (0x08, 1, Status.PASS),  # the parent flag flashes in a change of the performance state
        (0x08, 2, Status.FAIL),
        (0x20, 1, Status.PASS),
        (0x20, 2, Status.FAIL),
        (0x04, 9, Status.PASS),  # the power limit
        (0x01, 9, Status.PASS),  # idle
        (0x02, 9, Status.PASS),  # application clocks
        (0x100, 9, Status.PASS),
    ],
)
def test_reasons(bit: int, in_a_row: int, status: Status) -> None:
    assert judged(second(event(bit, 4.5, 9, in_a_row))).status is status


def test_the_finding_says_how_long_when_and_how_hot() -> None:
    hot = {"temperature_c": spread(41.0, 70.0, 88.0), "clock_sm_mhz": spread(345.0, 900.0, 1980.0)}
    cases = (case_use(), case_use("fit", events=(event(0x40),)))
    facts = second(
        during=gpu_use(events=(event(0x08, 3.5), event(0x40, 3.0)), **hot), cases=cases, temperature_slowdown_c=87
    )
    (found,) = judged(facts).findings
    assert found.finding.subject == f"GPU 1 ({bus_id(1)})"
    assert found.finding.observed == (
        "HW Slowdown 3.5 s, HW Thermal Slowdown 3.0 s during smoke.baseline/fit, at most 88 degrees C (slows down at "
        "87), 310 of 700 W, SM clock 345 to 1980 of 1980 MHz"
    )
    assert f"nvidia-smi -i {bus_id(1)}" in found.finding.remedy.commands[0]


def test_the_power_limit_is_evidence() -> None:
    evidence = judged(second(event(0x04, 6.0))).evidence[1].observed
    assert evidence.endswith("; SW Power Cap 6.0 s")


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        (
            {"during": GpuUse(), "hangs": "temperature_c"},
            Status.UNKNOWN,
            "NVML's call for temperature_c did not return",
        ),
        ({"hangs": "temperature_c"}, Status.UNKNOWN, "did not return, after 12 samples"),
        (
            {"during": GpuUse(), "errors": {"handle": "NVML_ERROR_GPU_IS_LOST"}},
            Status.UNKNOWN,
            "NVML_ERROR_GPU_IS_LOST",
        ),
        (
            {"during": gpu_use(events=()), "errors": {"clock_event_reasons": "NVML_ERROR_UNKNOWN"}},
            Status.UNKNOWN,
            "the clocks' event reasons were not read (NVML_ERROR_UNKNOWN)",
        ),
    ],
)
def test_what_was_not_read_is_unknown(changes: Any, status: Status, words: str) -> None:
    result = judged(second(**changes))
    assert (result.status, len(result.evidence)) == (status, 1)
    assert words in (result.reason or "")


def test_gpus_that_tell_no_reasons_are_no_subject() -> None:
    silent: dict[str, Any] = {
        "during": gpu_use(events=()),
        "errors": {"clock_event_reasons": "NVML_ERROR_NOT_SUPPORTED"},
    }
    result = judged(sampling(2, *(sampled_gpu(index, **silent) for index in range(2))))
    assert result.status is Status.SKIP
    assert "does not tell why its clocks are not higher" in (result.reason or "")


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (GpuSampling(state="not-started", error="no training was run"), Status.SKIP),
        (GpuSampling(state="driver-not-loaded", error="no driver"), Status.UNKNOWN),
        (GpuSampling(state="failed", error="the sampling process died of SIGSEGV"), Status.UNKNOWN),
        (GpuSampling(state="ready"), Status.UNKNOWN),
    ],
)
def test_without_samples_nothing_passes(facts: GpuSampling, status: Status) -> None:
    assert judged(facts).status is status


def test_a_gpu_that_the_trainings_did_not_use_is_not_judged() -> None:
    run = smoke_run("smoke.baseline", 1, smoke_case(replicas=1))
    hot = second(event(0x40))
    assert judged(hot, run, environment(CUDA_VISIBLE_DEVICES="0")).status is Status.PASS
    assert judged(hot, run, environment(CUDA_VISIBLE_DEVICES="1")).status is Status.FAIL


@pytest.mark.parametrize("facts", [SmokeRuns(), environment(CUDA_VISIBLE_DEVICES="MIG-1234")])
def test_where_it_is_not_known_which_gpus_worked_a_slowed_one_is_told_and_none_passes(facts: FactGroup) -> None:
    assert judged(second(event(0x40)), facts).status is Status.FAIL
    assert (judged(facts).status, judged(facts).evidence) == (Status.UNKNOWN, ())
