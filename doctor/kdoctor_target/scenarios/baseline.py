"""The recommended way: model, optimizer and metrics in the scope of a MirroredStrategy.

Measure: ``numpy``, 1 if the reference was computed in NumPy. One replica is the one device, which cannot be compared
with itself.
"""

from __future__ import annotations

from typing import Any

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_fit
from kdoctor_target.training.regression import descend, make_batches
from kdoctor_target.training.replicas import compiled_model, inspect_weights, make_strategy, train


def mirrored(case: Case) -> None:
    """Train on one device, then on all replicas with the same global batches."""
    strategy = make_strategy(case)
    if strategy.num_replicas_in_sync > 1:
        compare_fit(case, strategy)
    else:
        _compare_with_numpy(case, strategy)


def _compare_with_numpy(case: Case, strategy: Any) -> None:
    batches = make_batches(1)
    case.phase("build")
    with strategy.scope():
        model = compiled_model(case)
    reference = descend(model.get_weights(), batches)
    case.note(reference_losses=reference.losses)
    case.measure({"numpy": 1})
    train(case, model, batches)
    inspect_weights(case, strategy, model, reference)
