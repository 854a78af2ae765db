"""The recommended way: model, optimizer and metrics in the scope of a MirroredStrategy."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_fit
from kdoctor_target.training.replicas import make_strategy


def mirrored(case: Case) -> None:
    """Train on one device, then on all replicas with the same global batches."""
    compare_fit(case, make_strategy(case))


CASES = {"mirrored": mirrored}
