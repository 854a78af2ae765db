from __future__ import annotations

from helpers.comparison_checks import ComparisonCheck
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.custom_loop import custom_loop


class TestCustomLoop(ComparisonCheck):
    check = custom_loop
    scenario = "smoke.custom-loop"
    cases = ("mirrored",)

    def test_is_skipped_on_one_replica(self) -> None:
        assert compute_check(self.check, self.run(replicas=1)).status is Status.SKIP
