"""Tests for checks that compare the cases of a strategy with one device.

A test class inherits them and sets its check, its scenario and its cases::

    class TestCustomLoop(ComparisonCheck):
        check, scenario, cases = custom_loop, "smoke.custom-loop", ("mirrored",)
"""

from typing import Any, ClassVar

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.check import Check
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke._judging import training

NAN = Weights(variables=6, mirrored=6, nonfinite=("hidden/kernel",), replicas_agree=True)
DISAGREEING = Weights(variables=6, mirrored=6, nonfinite=(), replicas_agree=False)
NOT_MIRRORED = Weights(variables=6, mirrored=0, nonfinite=(), replicas_agree=None)


class ComparisonCheck:
    """The tests. The name keeps pytest from collecting this class itself."""

    check: ClassVar[Check]
    scenario: ClassVar[str]
    cases: ClassVar[tuple[str, ...]]
    measures: ClassVar[dict[str, float | None]] = {}

    def run(self, first: dict[str, Any] | None = None, replicas: int = 2) -> SmokeRun:
        """A healthy run with changes to its first case."""
        changes = [first or {}, *({} for _ in self.cases[1:])]
        made = [
            smoke_case(name, replicas, **{"measures": self.measures, **change})
            for name, change in zip(self.cases, changes, strict=True)
        ]
        return smoke_run(self.scenario, replicas, *made)

    def test_passes_if_every_case_matches_one_device(self) -> None:
        result = compute_check(self.check, self.run())
        assert result.status is Status.PASS
        assert [item.subject for item in result.evidence] == [training(name) for name in self.cases]

    @pytest.mark.parametrize(
        ("changes", "decisive"),
        [
            ({"weight_deviation": 0.18}, "0.18"),
            ({"losses": (1.0, 0.7)}, "1, 0.7 instead of 1, 0.5"),
            ({"weights": NAN, "weight_deviation": None}, "hidden/kernel"),
            ({"weights": DISAGREEING}, "different weights"),
            ({"weights": NOT_MIRRORED}, "0 of 6"),
            (
                {"outcome": "raised", "error_type": "ValueError", "error_message": "no"},
                "ValueError in phase inspect: no",
            ),
            (
                {"outcome": "timed-out", "phase": "step 4", "finished": "step 3", "steps": 3},
                "step 4 (last finished: step 3)",
            ),
        ],
    )
    def test_fails_if_a_case_does_not_match(self, changes: dict[str, Any], decisive: str) -> None:
        result = compute_check(self.check, self.run(changes))
        assert result.status is Status.FAIL
        assert decisive in result.findings[0].finding.observed

    @pytest.mark.parametrize("changes", [{"weights": None}, {"weight_deviation": None}, {"reference_losses": ()}])
    def test_is_unknown_without_data_to_compare(self, changes: dict[str, Any]) -> None:
        assert compute_check(self.check, self.run(changes)).status is Status.UNKNOWN

    def test_is_unknown_without_a_case(self) -> None:
        other = smoke_run(self.scenario, 2, smoke_case("another", 2), failure="the child died")
        assert compute_check(self.check, other).status is Status.UNKNOWN

    def test_skipped_cases_skip_the_check(self) -> None:
        skipped = {"outcome": "skipped", "skip_reason": "not here"}
        run = smoke_run(self.scenario, 2, *(smoke_case(name, 2, **skipped) for name in self.cases))
        result = compute_check(self.check, run)
        assert result.status is Status.SKIP
        assert "not here" in (result.reason or "")
