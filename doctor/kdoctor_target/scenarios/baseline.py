"""The recommended way: model, optimizer and metrics in the scope of a MirroredStrategy."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_fit
from kdoctor_target.training.regression import make_batches
from kdoctor_target.training.replicas import make_strategy

STEPS = 6


def mirrored(case: Case) -> None:
    """Train on one device, then on all replicas with the same global batches."""
    strategy = make_strategy(case)
    compare_fit(case, strategy, make_batches(strategy.num_replicas_in_sync, STEPS))


CASES = {"mirrored": mirrored}
