"""Which optimizers hide a gradient that is too large by a factor, such as the number of replicas.

Keras 3.5 to 3.7 sum the gradients of the replicas instead of averaging them, and so does a loss that is the mean of its
batch. Whether the weights show it depends on how a step depends on the gradient g.
"""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

PROPORTIONAL = "proportional"
"""The step of c * g is c times the step of g."""
INVARIANT = "invariant"
"""The step of c * g is the step of g, apart from a small epsilon."""
PARTLY = "partly"
"""The step of c * g differs from the step of g, by less than the factor c."""


class Scale(NamedTuple):
    """How the step of an optimizer depends on the scale of the gradient."""

    kind: str
    derivation: str


SCALES: Dict[str, Scale] = {
    "SGD": Scale(PROPORTIONAL, "w -= lr * g; momentum and nesterov add past steps, which scale with c, too"),
    "Adam": Scale(INVARIANT, "w -= lr * m / (sqrt(v) + eps): m scales with c, and so does sqrt(v)"),
    "AdamW": Scale(INVARIANT, "Adam; the decay of the weights does not use the gradient"),
    "Adamax": Scale(INVARIANT, "w -= lr * m / (u + eps): u is a running maximum of abs(g), which scales with c"),
    "Nadam": Scale(INVARIANT, "Adam with Nesterov momentum: m scales with c, and so does sqrt(v)"),
    "RMSprop": Scale(INVARIANT, "w -= lr * g / sqrt(v + eps): v scales with c squared"),
    "ScheduleFreeAdamW": Scale(INVARIANT, "z -= lr * g / (sqrt(v) + eps): sqrt(v) scales with c; w is an average of z"),
    "Adadelta": Scale(INVARIANT, "w -= lr * g * sqrt(d + eps) / sqrt(v + eps): d is the size of past steps, without c"),
    "Adagrad": Scale(PARTLY, "w -= lr * g / sqrt(a + eps): a starts at 0.1, not at 0"),
    "Adafactor": Scale(INVARIANT, "g is divided by its root mean square, of rows and columns for matrices"),
    "Ftrl": Scale(PARTLY, "w = -lr * z / sqrt(n): n starts at 0.1, not at 0"),
    "Lion": Scale(INVARIANT, "w -= lr * sign(m): the sign does not change with c"),
    "Lamb": Scale(INVARIANT, "Adam's step, scaled to the norm of the weights"),
    "Muon": Scale(INVARIANT, "matrices: m is orthogonalized after a division by its norm; others: Adam"),
}
"""By the name of the class in Keras, derived from ``update_step`` of Keras 3.15.1 (``keras/src/optimizers/<name>.py``).
Optimizers that are not here count as hiding the scale."""


def hides_scale(optimizer: Any, *, clips: bool, in_slots: bool = False) -> str:
    """Why the weights may not show a gradient that is too large; empty if they do.

    Args:
        optimizer: the job's.
        clips: whether it clips gradients, which limits them to a length.
        in_slots: whether its variables were compared, too. Those of each optimizer above grow with the gradient.
    """
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    kind = type(inner)
    scale = SCALES.get(kind.__name__) if kind.__module__.split(".")[0] in ("keras", "tf_keras") else None
    if scale is None:
        return f"it is not known whether the steps of {kind.__name__} grow with the gradient"
    if in_slots and not clips:
        return ""
    if scale.kind == INVARIANT:
        return f"the steps of {kind.__name__} do not grow with the gradient"
    if scale.kind == PARTLY:
        return f"the steps of {kind.__name__} grow less than the gradient"
    return "clipped gradients have a limited size" if clips else ""
