"""The scenarios that come with kdoctor."""

from __future__ import annotations

from kdoctor.collect.program import target_folder
from kdoctor.smoke.scenario import Scenario

_PROGRAMS = target_folder() / "scenarios"

# A case takes one to three seconds on a CPU. On a GPU that is newer than TensorFlow's build, the driver
# compiles every kernel first, which takes minutes.
_DEADLINE_S = 240.0

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        id="smoke.baseline",
        version=1,
        kind="baseline",
        title="Model, optimizer and metrics are made in the strategy's scope",
        expect=(
            "Trains on every replica that was asked for, each variable mirrored on each; the loss is finite and "
            "falls; weights and losses equal those of the same training on one device."
        ),
        program=_PROGRAMS / "baseline.py",
        cases=("mirrored",),
        deadline_s=_DEADLINE_S,
    ),
    Scenario(
        id="smoke.uneven-final-batch",
        version=1,
        kind="edge-case",
        title="The final batch does not divide evenly over the replicas",
        expect=(
            "A final batch that feeds every replica leaves finite weights. With drop_remainder=True the weights "
            "equal those of one device. A final batch that leaves a replica empty may turn the weights of a model "
            "with BatchNormalization to NaN: what happens here is reported."
        ),
        program=_PROGRAMS / "uneven_final_batch.py",
        cases=("fed-tail", "starved-tail", "guarded"),
        deadline_s=_DEADLINE_S,
    ),
    Scenario(
        id="smoke.model-outside-scope",
        version=1,
        kind="failure-path",
        title="The model is made outside the strategy's scope",
        expect=(
            "Compiled inside the scope, fit raises. Compiled outside too, it trains on one replica in silence, and "
            "kdoctor must see that nothing is replicated."
        ),
        program=_PROGRAMS / "model_outside_scope.py",
        cases=("compile-inside", "all-outside"),
        deadline_s=_DEADLINE_S,
    ),
)
"""Offered by the entry point ``kdoctor.scenarios``."""
