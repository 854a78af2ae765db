from __future__ import annotations

from helpers.optimizer_checks import OptimizerCheck
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke._optimizers import FAMILIES
from kdoctor_checks.smoke.optimizer_built_late import optimizer_built_late


class TestOptimizerBuiltLate(OptimizerCheck):
    check, scenario, cases = (
        optimizer_built_late,
        "smoke.custom-loop-optimizers",
        tuple(f"{family}-built-late" for family in FAMILIES),
    )

    def test_error_of_keras_3_is_a_warning(self) -> None:
        changes = {"outcome": "raised", "error_type": "InvalidArgumentError", "phase": "train"}
        result = compute_check(self.check, self.run(changes))
        assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
        assert "optimizer.build(" in result.findings[0].finding.remedy.summary
