"""A custom training loop under MirroredStrategy."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_custom_loop
from kdoctor_target.training.replicas import make_strategy


def mirrored(case: Case) -> None:
    """``strategy.run`` and ``compute_average_loss``, against ``fit`` on one device."""
    compare_custom_loop(case, make_strategy(case))
