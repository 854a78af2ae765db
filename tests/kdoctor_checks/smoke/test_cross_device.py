from __future__ import annotations

from helpers.comparison_checks import ComparisonCheck
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.cross_device import cross_device


class TestCrossDevice(ComparisonCheck):
    check = cross_device
    scenario = "smoke.cross-device"
    cases = ("reduction-to-one-device", "nccl")

    def test_is_skipped_on_one_replica(self) -> None:
        assert compute_check(self.check, self.run(replicas=1)).status is Status.SKIP
