"""What the built-in scenarios train on, whatever the framework."""

from __future__ import annotations

from typing import Any, Tuple

import numpy as np

FEATURES = 4
EPOCHS = 2

# SGD: its step is proportional to the gradient, so a gradient that is summed instead of averaged over the
# replicas shows in the weights. Adam divides by the gradient's own size and hides it.
LEARNING_RATE = 0.1


def regression(examples: int, seed: int = 20) -> Tuple[Any, Any]:
    """Inputs and targets of a linear regression with a little noise, the same on every machine."""
    numbers = np.random.RandomState(seed)
    inputs = numbers.uniform(-1.0, 1.0, size=(examples, FEATURES))
    slopes = np.linspace(-1.0, 1.0, FEATURES).reshape(FEATURES, 1)
    targets = inputs @ slopes + 0.5 + 0.05 * numbers.standard_normal((examples, 1))
    return inputs.astype("float32"), targets.astype("float32")
