"""A custom training loop under MirroredStrategy."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.custom_loop import train_by_hand
from kdoctor_target.training.replicas import Batches, inspect_weights, make_strategy, regression, train_reference

STEPS = 6
PER_REPLICA = 8


def mirrored(case: Case) -> None:
    """``strategy.run`` and ``compute_average_loss``, against ``fit`` on one device."""
    strategy = make_strategy(case)
    global_batch = PER_REPLICA * strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * global_batch)
    batches = Batches(inputs, targets, global_batch)
    reference = train_reference(case, batches, normalised=False)
    model = train_by_hand(case, strategy, batches)
    inspect_weights(case, strategy, model, reference)


CASES = {"mirrored": mirrored}
