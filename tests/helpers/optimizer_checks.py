"""Tests for checks that compare an optimizer's variables with one device, too."""

from __future__ import annotations

from typing import ClassVar

import pytest

from helpers.comparison_checks import ComparisonCheck
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check

MEASURES: dict[str, float | None] = {"moved": 0.3, "state": 10.0, "mirrored_state": 10.0, "state_deviation": 2e-7}


class OptimizerCheck(ComparisonCheck):
    """The tests. The name keeps pytest from collecting this class itself."""

    measures: ClassVar[dict[str, float | None]] = MEASURES

    @pytest.mark.parametrize(
        ("changes", "decisive"),
        [
            ({"mirrored_state": 8.0}, "8 of 10"),
            ({"state_deviation": 0.5}, "0.5"),
            ({"state_deviation": None}, "not finite"),
        ],
    )
    def test_different_optimizer_variables_are_a_warning(self, changes: dict[str, float | None], decisive: str) -> None:
        result = compute_check(self.check, self.run({"measures": {**MEASURES, **changes}}))
        assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
        assert decisive in result.findings[0].finding.observed

    @pytest.mark.parametrize("measures", [{}, {**MEASURES, "moved": 1e-6}])
    def test_is_unknown_if_the_optimizer_did_nothing(self, measures: dict[str, float | None]) -> None:
        assert compute_check(self.check, self.run({"measures": measures})).status is Status.UNKNOWN
