"""Model, optimizer and metrics in the strategy's scope: the way it should be done."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import (
    Batches,
    inspect_weights,
    make_strategy,
    regression,
    train_mirrored,
    train_reference,
)

STEPS = 6
PER_REPLICA = 8


def mirrored(case: Case) -> None:
    """Train on one device, then over all replicas on the same global batches."""
    strategy = make_strategy(case)
    global_batch = PER_REPLICA * strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * global_batch)
    batches = Batches(inputs, targets, global_batch)
    reference = train_reference(case, batches, normalised=False)
    model = train_mirrored(case, strategy, batches, normalised=False)
    inspect_weights(case, strategy, model, reference)


CASES = {"mirrored": mirrored}
