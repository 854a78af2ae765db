"""The model of the scenarios in NumPy, and the values that it expects.

Measures: ``metric NAME`` and ``reference NAME``, the reported value and the one that NumPy computes.
"""

from __future__ import annotations

from typing import Any, Dict

import numpy as np

from kdoctor_target.runner.case import Case


def outputs_of(model: Any, inputs: Any) -> Any:
    """The outputs of :func:`dense_model` for inputs, computed from its weights."""
    hidden, hidden_bias, out, out_bias = (weight.astype("float64") for weight in model.get_weights())
    totals = np.tanh(inputs @ hidden + hidden_bias) @ out + out_bias
    return _ACTIVATIONS[model.layers[-1].activation.__name__](totals)


def measure_values(case: Case, reported: Dict[str, Any], expected: float) -> None:
    """Report values that should be this one."""
    for name, value in reported.items():
        case.measure({f"metric {name}": float(np.asarray(value)), f"reference {name}": expected})


def _softmax(totals: Any) -> Any:
    powers = np.exp(totals - totals.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


_ACTIVATIONS = {
    "linear": lambda totals: totals,
    "sigmoid": lambda totals: 1 / (1 + np.exp(-totals)),
    "softmax": _softmax,
}
