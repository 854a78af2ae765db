from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import NOT_SUPPORTED, gpu, gpus, v100
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.temperature import temperature


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"temperature_margin_c": 5}, Status.PASS),
        ({"temperature_margin_c": 4}, Status.FAIL),
        ({"temperature_margin_c": -1}, Status.FAIL),
        ({"temperature_margin_c": None, "errors": {"temperature_margin_c": "Unknown Error"}}, Status.UNKNOWN),
    ],
)
def test_newer_gpus_use_margin(change: dict[str, Any], status: Status) -> None:
    result = compute_check(temperature, gpus(2, gpu(0), gpu(1, **change)))
    assert (result.status, result.severity) == (status, Severity.WARNING)


def test_negative_threshold_is_not_a_temperature() -> None:
    """Recorded on H100: thresholds of -2 and -8, which every temperature exceeds."""
    result = compute_check(temperature, gpus(1, gpu(0, temperature_slowdown_margin_c=-2, temperature_c=34)))
    assert result.evidence[0].observed.startswith("34 C, 51 C below ")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"temperature_c": 82}, Status.PASS),
        ({"temperature_c": 83}, Status.FAIL),
        ({"temperature_c": None}, Status.UNKNOWN),
        ({"temperature_slowdown_c": None}, Status.UNKNOWN),
    ],
)
def test_older_gpus_use_slowdown_temperature(change: dict[str, Any], status: Status) -> None:
    """A V100 slows down at 87 degrees Celsius."""
    assert compute_check(temperature, gpus(2, v100(0), v100(1, **change))).status is status


def test_checklist_sets_margin() -> None:
    warm = gpus(1, gpu(0, temperature_margin_c=12))
    assert compute_check(temperature, warm, least_margin_c=15).status is Status.FAIL


def test_virtual_gpus_are_skipped() -> None:
    names = ("temperature_margin_c", "temperature_c", "temperature_slowdown_c")
    silent: dict[str, Any] = {**dict.fromkeys(names), "errors": dict.fromkeys(names, NOT_SUPPORTED)}
    assert compute_check(temperature, gpus(2, gpu(0, **silent), gpu(1, **silent))).status is Status.SKIP
    assert compute_check(temperature, gpus(2, gpu(0), gpu(1, **silent))).status is Status.UNKNOWN


def test_hot_gpus_share_the_headline_and_name_the_same_heat() -> None:
    hot = (gpu(0, temperature_margin_c=2), gpu(1, temperature_margin_c=4, clock_event_reasons=(0x20,) * 3))
    found = [item.finding for item in compute_check(temperature, gpus(3, *hot, gpu(2))).findings]
    assert {finding.headline for finding in found} == {"2 to 4 C below the throttling threshold"}
    assert [finding.explained_by for finding in found] == [(), ("gpu.thermal-slowdown",)]


def test_reason_names_what_was_not_read() -> None:
    unread = v100(0, temperature_c=None, errors={"temperature_c": "Unknown Error"})
    reason = compute_check(temperature, gpus(1, unread)).reason or ""
    assert "temperature (Unknown Error)" in reason
    assert "slowdown" not in reason


def test_gpu_at_the_least_margin_is_not_hot() -> None:
    (found,) = compute_check(
        temperature, gpus(2, gpu(0, temperature_margin_c=5), gpu(1, temperature_margin_c=2))
    ).findings
    assert found.finding.headline == "2 C below the throttling threshold"


def test_unread_temperature_leaves_the_other_gpus() -> None:
    result = compute_check(temperature, gpus(3, gpu(0), gpu(1, temperature_margin_c=None), gpu(2)))
    assert [item.subject[:5] for item in result.unjudged] == ["GPU 1"]
    assert [item.subject[:5] for item in result.evidence] == ["GPU 0", "GPU 2"]


def test_temperatures_that_no_gpu_could_report_are_unknown() -> None:
    names = ("temperature_margin_c", "temperature_c", "temperature_slowdown_c")
    broken: dict[str, Any] = {**dict.fromkeys(names), "errors": dict.fromkeys(names, "Unknown Error")}
    assert compute_check(temperature, gpus(1, gpu(0, **broken))).status is Status.UNKNOWN
