from __future__ import annotations

from helpers.optimizer_checks import OptimizerCheck
from kdoctor.facts import Weights
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.loss_scale_overflow import loss_scale_overflow


class TestLossScaleOverflow(OptimizerCheck):
    check, scenario = loss_scale_overflow, "smoke.optimizer-options"
    cases = ("overflow-on-one-replica",)

    def test_keras_3_fails_as_measured(self) -> None:
        changes = {
            "weights": Weights(variables=4, mirrored=4, nonfinite=("out/bias",), replicas_agree=True),
            "weight_deviation": None,
            "losses": (None,),
            "reference_losses": (5.2e17,),
        }
        result = compute_check(self.check, self.run(changes))
        assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
        assert "mixed_bfloat16" in result.findings[0].finding.remedy.summary
