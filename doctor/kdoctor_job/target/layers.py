"""The layers of a model: all, those that draw random numbers, and BatchNormalization."""

from __future__ import annotations

from typing import Any, Iterator, List

import numpy as np

_RATES = ("dropout", "recurrent_dropout", "rate", "stddev", "addition_factor", "threshold_factor")
"""Attributes without which a layer with a generator draws nothing, if it has any of them and all are zero."""

REACHED = "_kdoctor_reached"
"""The attribute of a copy with layers that its functions use and Keras does not find in it."""


def layers_of(model: Any) -> List[Any]:
    """Every layer, including nested ones, and in a copy those that only the functions of its model know."""
    nested = model._flatten_layers(include_self=False, recursive=True)  # noqa: SLF001 - no public equivalent
    return [*nested, *vars(model).get(REACHED, ())]


def is_built(model: Any) -> bool:
    """Whether the model has its variables, and not only those that it makes before the first batch."""
    if not (model.built and model.variables):
        return False
    return bool(model.trainable_variables) or all(layer.built for layer in layers_of(model))


def normalisations(model: Any) -> Iterator[Any]:
    """BatchNormalization layers that train on the moments of one replica's share."""
    for layer in layers_of(model):
        kinds = [base.__name__ for base in type(layer).__mro__]
        if "BatchNormalization" in kinds and layer.trainable and not getattr(layer, "synchronized", False):
            yield layer


def random_layers(model: Any) -> List[Any]:
    """Layers that draw random numbers during training."""
    return [layer for layer in layers_of(model) if _draws(layer)]


def _draws(layer: Any) -> bool:
    # A layer may have a generator that it does not use: recurrent and attention layers without dropout, every Dropout
    # of Keras 2, and Solarization, whose ranges are empty by default.
    rates = [value for value in (getattr(layer, name, None) for name in _RATES) if value is not None]
    if rates and not any(np.any(rate) for rate in rates):
        return False
    owned = [value for name, value in vars(layer).items() if not name.startswith("_self")]
    owned += getattr(layer, "_seed_generators", ())  # of Keras 3, also those in a list or a dictionary
    return any(type(value).__name__ in ("SeedGenerator", "RandomGenerator") for value in owned)
