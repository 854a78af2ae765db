"""A strategy's training against the same training on one device."""

from __future__ import annotations

from typing import Any, Optional

from kdoctor_target.runner.case import Case
from kdoctor_target.training.custom_loop import train_custom_loop
from kdoctor_target.training.regression import Batches, make_batches
from kdoctor_target.training.replicas import inspect_weights, train_mirrored, train_reference


def compare_fit(case: Case, strategy: Any, batches: Optional[Batches] = None, *, normalised: bool = False) -> None:
    """Train with ``Model.fit`` and compare the weights. ``batches`` are full ones by default."""
    batches = batches or make_batches(strategy.num_replicas_in_sync)
    reference = train_reference(case, batches, normalised=normalised)
    model = train_mirrored(case, strategy, batches, normalised=normalised)
    inspect_weights(case, strategy, model, reference)


def compare_custom_loop(case: Case, strategy: Any, batches: Optional[Batches] = None) -> None:
    """Train with a custom loop (``strategy.run``) and compare the weights. ``batches`` are full ones by default."""
    batches = batches or make_batches(strategy.num_replicas_in_sync)
    reference = train_reference(case, batches)
    model = train_custom_loop(case, strategy, batches)
    inspect_weights(case, strategy, model, reference)
