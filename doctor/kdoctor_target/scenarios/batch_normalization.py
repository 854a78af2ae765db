"""BatchNormalization over data whose shares differ between replicas."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import make_batches
from kdoctor_target.training.replicas import compiled_model, inspect_weights, make_strategy, train, train_reference


def plain(case: Case) -> None:
    """Every replica normalises its own examples, so the weights differ from one device's, but are finite."""
    _train(case, synchronized=False)


def synchronized(case: Case) -> None:
    """All replicas normalise by the moments of the whole batch, as one device does."""
    _train(case, synchronized=True)


def _train(case: Case, *, synchronized: bool) -> None:
    strategy = make_strategy(case)
    batches = make_batches(strategy.num_replicas_in_sync)
    reference = train_reference(case, batches, normalised=True)
    case.phase("build")
    with strategy.scope():
        model = compiled_model(case, normalised=True, synchronized=synchronized)
    train(case, model, batches)
    inspect_weights(case, strategy, model, reference)
