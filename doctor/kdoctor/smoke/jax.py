"""The scenarios about ``keras.distribution``, which trains on JAX alone."""

from __future__ import annotations

from kdoctor.probes.process.launch import target_folder
from kdoctor.smoke.scenario import Scenario

_PROGRAMS = target_folder() / "scenarios"
_DEADLINE_S = 240.0

ON_JAX: tuple[Scenario, ...] = (
    Scenario(
        id="smoke.data-parallel",
        version=1,
        kind="baseline",
        tier="standard",
        strategy="data-parallel",
        framework="jax",
        title="keras.distribution.DataParallel on JAX",
        expect=(
            "Every variable is whole on every device, and weights and losses equal those of one device, with "
            "BatchNormalization and with a smaller final batch that divides too."
        ),
        program=_PROGRAMS / "data_parallel.py",
        cases=("fit", "batch-normalization", "smaller-tail"),
        deadline_s=_DEADLINE_S,
        typical_s=5.0,
    ),
    Scenario(
        id="smoke.data-parallel-batches",
        version=1,
        kind="edge-case",
        tier="standard",
        strategy="data-parallel",
        framework="jax",
        title="Batches that do not divide over the devices of DataParallel",
        expect=(
            "JAX cuts a batch into equal shares and refuses one that does not divide, also if it is the last of the "
            "epoch: what happens here is reported."
        ),
        program=_PROGRAMS / "data_parallel_batches.py",
        cases=("uneven-tail", "uneven-batch"),
        deadline_s=_DEADLINE_S,
        typical_s=2.5,
    ),
    Scenario(
        id="smoke.model-parallel",
        version=1,
        kind="baseline",
        tier="standard",
        strategy="model-parallel",
        framework="jax",
        title="keras.distribution.ModelParallel on JAX",
        expect=(
            "Every variable that the layout cuts, and the optimizer's for it, is held in shares, one on each device; "
            "weights and losses equal those of one device. So with every second device a replica of its own."
        ),
        program=_PROGRAMS / "model_parallel.py",
        cases=("model-axis", "data-and-model"),
        deadline_s=_DEADLINE_S,
        typical_s=3.0,
    ),
    Scenario(
        id="smoke.layout-map",
        version=1,
        kind="failure-path",
        tier="standard",
        strategy="model-parallel",
        framework="jax",
        title="Mistakes with the layouts of ModelParallel",
        expect=(
            "A dimension that does not divide and an axis that is not there raise; so does a model that was made "
            "before the distribution was set, or it is seen whole. A layout that matches no variable trains unsharded "
            "in silence, and kdoctor must see it."
        ),
        program=_PROGRAMS / "layout_map.py",
        cases=("matches-nothing", "partial-path", "not-divisible", "unknown-axis", "model-outside"),
        deadline_s=_DEADLINE_S,
        typical_s=5.0,
    ),
)
