from __future__ import annotations

from helpers.optimizer_checks import OptimizerCheck
from kdoctor.smoke.feature_scenarios import OPTIMIZERS
from kdoctor_checks.smoke.custom_loop_optimizers import custom_loop_optimizers


class TestCustomLoopOptimizers(OptimizerCheck):
    check, scenario, cases = (
        custom_loop_optimizers,
        "smoke.custom-loop-optimizers",
        tuple(f"{family}-built-in-scope" for family in OPTIMIZERS),
    )
