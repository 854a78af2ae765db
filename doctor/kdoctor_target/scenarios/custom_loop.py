"""A custom training loop under MirroredStrategy."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_custom_loop
from kdoctor_target.training.regression import make_batches
from kdoctor_target.training.replicas import make_strategy

STEPS = 6


def mirrored(case: Case) -> None:
    """``strategy.run`` and ``compute_average_loss``, against ``fit`` on one device."""
    strategy = make_strategy(case)
    compare_custom_loop(case, strategy, make_batches(strategy.num_replicas_in_sync, STEPS))


CASES = {"mirrored": mirrored}
