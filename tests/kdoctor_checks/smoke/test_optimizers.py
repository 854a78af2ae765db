from __future__ import annotations

from helpers.optimizer_checks import OptimizerCheck
from kdoctor.smoke.feature_scenarios import OPTIMIZERS
from kdoctor_checks.smoke.optimizers import optimizers


class TestOptimizers(OptimizerCheck):
    check, scenario = optimizers, "smoke.optimizers"
    cases = (*OPTIMIZERS, "nesterov", "amsgrad", "centered-rmsprop", "several-optimizers", "schedule-free-adamw")
