from __future__ import annotations

from helpers.optimizer_checks import OptimizerCheck
from kdoctor_checks.smoke.optimizer_options import optimizer_options


class TestOptimizerOptions(OptimizerCheck):
    check, scenario, cases = (
        optimizer_options,
        "smoke.optimizer-options",
        ("weight-decay", "ema", "exponential-decay", "piecewise-decay", "cosine-decay", "loss-scale"),
    )
