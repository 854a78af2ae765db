"""The scenarios of Keras 3 on JAX."""

from functools import partial
from pathlib import Path

from kdoctor.smoke.definition import SPEED_EXPECTED
from kdoctor.smoke.definition import define as define_anywhere
from kdoctor.smoke.feature_scenarios import OPTIMIZERS

define = partial(define_anywhere, folder=Path(__file__).parent / "target")

JAX_OPTIMIZERS = (
    *(name for name in OPTIMIZERS if name != "sgd"),
    "nesterov",
    "amsgrad",
    "centered-rmsprop",
    "weight-decay",
    "ema",
    "accumulation",
    "schedule",
    "loss-scale",
)
"""The cases that compare an optimizer's variables, too."""

ON_JAX = (
    define(
        "smoke.data-parallel",
        strategy="data-parallel",
        framework="jax",
        title="keras.distribution.DataParallel on JAX",
        expect="Every device holds every variable. Weights and losses match one device, including with "
        "BatchNormalization and with a smaller final batch that divides.",
        cases=("fit", "batch-normalization", "smaller-tail"),
        typical_s=5.0,
    ),
    define(
        "smoke.data-parallel-batches",
        version=2,
        kind="edge-case",
        strategy="data-parallel",
        framework="jax",
        title="DataParallel with batches that do not divide evenly",
        expect="JAX splits a batch into equal shares and raises if it does not divide: in fit, evaluate, predict, and "
        "in the validation after an epoch. The result is reported. Without the remainder, and with padding of weight "
        "zero, results match one device.",
        cases=("uneven-tail", "uneven-batch", "evaluate", "predict", "validation", "drop-remainder", "padded"),
        typical_s=9.0,
    ),
    define(
        "smoke.data-parallel-features",
        version=2,
        kind="edge-case",
        strategy="data-parallel",
        framework="jax",
        title="Features of real jobs with DataParallel on JAX",
        expect="Clipping, several steps per execution, optimizers and their options, metrics, weighted and custom "
        "losses, layers, callbacks, steps on single batches and mixed precision train as on one device. Random layers "
        "draw different numbers for the examples of different devices, and the same again with the same seed.",
        cases=(
            "clipnorm",
            "global-clipnorm",
            "clipvalue",
            "steps-per-execution",
            *JAX_OPTIMIZERS,
            "run-eagerly",
            "metrics",
            "metrics-of-classes",
            "sample-weight",
            "class-weight",
            "regularizers",
            "dropout",
            "random-layers",
            "add-loss",
            "outputs",
            "train-step",
            "normalization",
            "embedding",
            "recurrent",
            "attention",
            "frozen",
            "learning-rate",
            "best-epoch",
            "on-batch",
            "float16",
            "bfloat16",
        ),
        typical_s=55.0,
    ),
    define(
        "smoke.model-parallel",
        strategy="model-parallel",
        framework="jax",
        title="keras.distribution.ModelParallel on JAX",
        expect="Every variable that the layout shards, and its optimizer state, has one shard on each device. Weights "
        "and losses match one device, including on a mesh with data and model axes.",
        cases=("model-axis", "data-and-model"),
        typical_s=3.0,
    ),
    define(
        "smoke.layout-map",
        kind="failure-path",
        strategy="model-parallel",
        framework="jax",
        title="Mistakes in the layout map of ModelParallel",
        expect="A dimension that does not divide and an axis that does not exist raise. A model created before the "
        "distribution raises or is unsharded. A layout that matches no variable trains unsharded without an error, and "
        "kdoctor must detect it.",
        cases=("matches-nothing", "partial-path", "not-divisible", "unknown-axis", "model-outside"),
        typical_s=5.0,
    ),
    define(
        "smoke.compute-jax",
        tier="full",
        strategy="data-parallel",
        framework="jax",
        title="Matrix products and copies on each device with JAX",
        expect=SPEED_EXPECTED,
        cases=("each-device",),
        deadline_s=900.0,
        typical_s=4.0,
    ),
)
"""The scenarios of ``keras.distribution``, which trains only on JAX."""
