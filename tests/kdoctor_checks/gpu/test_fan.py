from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import geforce, gpus
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.fan import fan


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),  # a cool GPU stops its fan
        ({"temperature_c": 64}, Status.PASS),
        ({"temperature_c": 65}, Status.FAIL),
        ({"temperature_c": 90, "fan_speed_percent": 30}, Status.PASS),
        ({"temperature_c": None}, Status.UNKNOWN),
        ({"temperature_c": None, "fan_speed_percent": 30}, Status.PASS),
        ({"fan_speed_percent": None, "errors": {"fan_speed_percent": "ERR!"}}, Status.UNKNOWN),  # recorded
    ],
)
def test_stopped_fan_fails_on_hot_card(change: dict[str, Any], status: Status) -> None:
    result = compute_check(fan, gpus(2, geforce(0), geforce(1, **change)))
    assert (result.status, result.severity) == (status, Severity.WARNING)


def test_modules_without_fan_are_skipped() -> None:
    assert "NVIDIA H100 80GB HBM3" in (compute_check(fan, gpus(8)).reason or "")


def test_checklist_sets_temperature() -> None:
    warm = gpus(1, geforce(0, temperature_c=60))
    assert compute_check(fan, warm, may_stand_below_c=50).status is Status.FAIL


def test_commands_name_only_cards_that_are_known_to_be_hot() -> None:
    cards = gpus(2, geforce(0, temperature_c=90), geforce(1, temperature_c=None))
    result = compute_check(fan, cards, may_stand_below_c=1)
    assert [item.finding.headline for item in result.findings] == ["fan stopped at 90 C"]
    assert [command.split()[:3] for command in result.findings[0].finding.remedy.look] == [
        ["nvidia-smi", "-i", "0000:10:00.0"]
    ] * 2
