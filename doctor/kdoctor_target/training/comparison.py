"""A strategy's training beside the same training on one device: by ``fit`` and by hand."""

from __future__ import annotations

from typing import Any

from kdoctor_target.runner.case import Case
from kdoctor_target.training.custom_loop import train_by_hand
from kdoctor_target.training.replicas import Batches, inspect_weights, train_mirrored, train_reference


def compare_fit(case: Case, strategy: Any, batches: Batches) -> None:
    """``Model.fit``."""
    reference = train_reference(case, batches, normalised=False)
    model = train_mirrored(case, strategy, batches, normalised=False)
    inspect_weights(case, strategy, model, reference)


def compare_custom_loop(case: Case, strategy: Any, batches: Batches) -> None:
    """``strategy.run`` by hand."""
    reference = train_reference(case, batches, normalised=False)
    model = train_by_hand(case, strategy, batches)
    inspect_weights(case, strategy, model, reference)
