from __future__ import annotations

from helpers.comparison_checks import ComparisonCheck
from kdoctor_checks.smoke.one_device import one_device


class TestOneDevice(ComparisonCheck):
    check = one_device
    scenario = "smoke.one-device"
    cases = ("fit", "custom-loop")
