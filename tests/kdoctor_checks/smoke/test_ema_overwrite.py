from __future__ import annotations

from helpers.optimizer_checks import OptimizerCheck
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.ema_overwrite import ema_overwrite


class TestEmaOverwrite(OptimizerCheck):
    check, scenario = ema_overwrite, "smoke.optimizer-options"
    cases = ("ema-overwrite",)

    def test_error_of_keras_3_names_the_alternative(self) -> None:
        message = "Exception encountered when calling Cond.call().\n\n\x1b[1m`merge_call` called while\x1b[0m"
        changes = {"outcome": "raised", "error_type": "RuntimeError", "error_message": message, "phase": "train"}
        result = compute_check(self.check, self.run(changes))
        assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
        assert "use_ema=True" in result.findings[0].finding.remedy.summary

    def test_another_error_is_not_blamed_on_the_option(self) -> None:
        changes = {"outcome": "raised", "error_type": "RuntimeError", "error_message": "no", "phase": "train"}
        (item,) = compute_check(self.check, self.run(changes)).findings
        assert "use_ema=True" not in item.finding.remedy.summary
