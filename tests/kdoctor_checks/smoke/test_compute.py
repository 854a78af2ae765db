from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import gpu, gpus, smoke_case, smoke_run
from helpers.facts.gpus import bus_id
from kdoctor.check import Check
from kdoctor.facts import Gpus, SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.compute_jax import compute_jax
from kdoctor_checks.smoke.compute import compute

BOTH = pytest.mark.parametrize("check", [compute, compute_jax], ids=lambda check: check.id)


def ran(check: Check, *tflops: float | None, copies: tuple[float, ...] = (), **changes: Any) -> SmokeRun:
    copied = copies or (2900.0,) * len(tflops)
    measures = {f"tflops {place}": rate for place, rate in enumerate(tflops)}
    measures |= {f"copy_gbs {place}": rate for place, rate in enumerate(copied)}
    where = tuple(bus_id(place) for place in range(len(tflops)))
    case = smoke_case("each-device", len(tflops), kind="GPU", measures=measures, bus_ids=where, **changes)
    return smoke_run(check.id, len(tflops), case, devices_kind="gpu", gpus_seen=len(tflops))


def machine(count: int, **changes: Any) -> Gpus:
    return gpus(count, *(gpu(index, **changes) for index in range(count)))


@BOTH
@cases(
    ((700.0, 710.0, 690.0, 705.0), (), []),
    ((700.0, 710.0, 590.0, 705.0), (), ["GPU 2"]),
    ((700.0, 710.0, 610.0, 705.0), (), []),
    ((700.0, 710.0, 690.0), (2900.0, 1450.0, 2880.0), ["GPU 1"]),
    ((700.0, 350.0), (), ["GPU 1"]),
)
def test_outlier_among_equal_gpus_fails(
    check: Check, tflops: tuple[float, ...], copies: tuple[float, ...], slow: list[str]
) -> None:
    result = compute_check(check, ran(check, *tflops, copies=copies), machine(len(tflops)))
    assert [item.finding.subject[:5] for item in result.findings] == slow
    assert result.status is (Status.FAIL if slow else Status.PASS)


@BOTH
def test_gpus_of_different_models_are_not_compared(check: Check) -> None:
    mixed = gpus(2, gpu(0), gpu(1, name="NVIDIA L4"))
    result = compute_check(check, ran(check, 700.0, 90.0), mixed)
    assert result.status is Status.SKIP
    # 90 of 121 TFLOP/s is 74%; 700 of 989 is 71%, 2900 of 3350 GB/s is 87%.
    assert result.reason is not None
    assert "71% and 87%" in result.reason
    assert "74%" in result.reason


@BOTH
def test_single_gpu_has_nothing_to_be_compared_with(check: Check) -> None:
    result = compute_check(check, ran(check, 700.0), machine(1))
    assert result.status is Status.SKIP
    assert (result.reason or "").startswith("GPU 0")


@BOTH
def test_unknown_model_has_no_published_rates(check: Check) -> None:
    result = compute_check(check, ran(check, 700.0, 710.0), machine(2, name="NVIDIA Next"))
    assert result.status is Status.PASS
    assert "published" not in result.evidence[0].observed


@BOTH
def test_device_that_was_not_measured_is_unknown(check: Check) -> None:
    result = compute_check(check, ran(check, 700.0, None, 705.0), machine(3))
    assert result.status is Status.UNKNOWN
    assert [item.subject[:5] for item in result.unjudged] == ["GPU 1"]
    assert [item.subject[:5] for item in result.evidence] == ["GPU 0", "GPU 2"]


@BOTH
def test_run_that_measured_no_device_is_unknown(check: Check) -> None:
    result = compute_check(check, ran(check), machine(2))
    assert (result.status, "no device was measured" in (result.reason or "")) == (Status.UNKNOWN, True)


@BOTH
@pytest.mark.parametrize("facts", [(), (machine(2, name=None),)])
def test_gpus_of_unknown_models_are_unknown(check: Check, facts: tuple[Gpus, ...]) -> None:
    result = compute_check(check, ran(check, 700.0, 350.0), *facts)
    assert [item.subject[:3] for item in result.unjudged] == ["GPU", "GPU"]


@BOTH
def test_gpu_whose_equals_were_not_measured_is_unknown(check: Check) -> None:
    result = compute_check(check, ran(check, 700.0, None), machine(2))
    assert [item.subject[:5] for item in result.unjudged] == ["GPU 0", "GPU 1"]


@BOTH
def test_case_that_did_not_finish_fails(check: Check) -> None:
    assert compute_check(check, ran(check, 700.0, outcome="died", signal="SIGSEGV")).status is Status.FAIL


@BOTH
def test_cpu_devices_are_skipped(check: Check) -> None:
    measures = {"tflops 0": 0.01, "copy_gbs 0": 5.0}
    case = smoke_case("each-device", 1, kind="CPU", measures=measures)
    assert compute_check(check, smoke_run(check.id, 1, case, devices_kind="cpu")).status is Status.SKIP


@BOTH
@pytest.mark.parametrize(("slowest", "slow"), [(350.0, []), (349.0, ["GPU 2"])])
def test_gpu_may_be_as_slow_as_the_parameter_says(check: Check, slowest: float, slow: list[str]) -> None:
    result = compute_check(check, ran(check, 700.0, 700.0, slowest), machine(3), slowest_share=0.5)
    assert [item.finding.subject[:5] for item in result.findings] == slow
