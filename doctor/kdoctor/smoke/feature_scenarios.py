"""The built-in scenarios about features of Keras that a job may use."""

from __future__ import annotations

from kdoctor.smoke.definition import define

FEATURES = (
    define(
        "smoke.features",
        kind="edge-case",
        title="Gradient clipping, steps_per_execution, an optimizer built in its first step, and Dropout",
        expect="Each matches one device on the same global batches, and each replica has its own Dropout mask. What "
        "Keras 3 does instead is reported, and so is the working alternative to each.",
        cases=(
            "clipnorm",
            "global-clipnorm",
            "clipvalue",
            "clip-after-reduction",
            "steps-per-execution",
            "optimizer-built-late",
            "optimizer-built-in-scope",
            "dropout",
            "dropout-per-replica",
        ),
        typical_s=12.0,
    ),
)
"""Part of the built-in scenarios."""
