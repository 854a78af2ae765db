"""The trainings on other backends than TensorFlow."""

from functools import partial
from pathlib import Path

from kdoctor.smoke.definition import HOT_S, SAME_BITS_EXPECTED, SPEED_EXPECTED
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
        "smoke.same-bits-jax",
        strategy="data-parallel",
        framework="jax",
        title="The same programs on every device with JAX, compared bit by bit",
        expect=SAME_BITS_EXPECTED,
        cases=("all-devices",),
        settings={"hot_s": HOT_S},
        lasts="hot_s",
        typical_s=9.0,
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


ON_TORCH = (
    define(
        "smoke.torch-data-parallel",
        strategy="distributed-data-parallel",
        framework="torch",
        version=2,
        title="Keras on torch over several processes",
        expect="A custom loop over a model in DistributedDataParallel matches the weights and losses of one device, "
        "with optimizers of torch and of Keras, clipping, gradient accumulation and attention, too. Metrics whose "
        "counts are added up over the ranks match, and the rank in the seed gives each rank its own Dropout masks. "
        "A model without variables is refused, and a lost process ends the others with an error. What Model.fit and "
        "keras.distribution do is reported.",
        cases={
            "smoke.torch-data-parallel": (
                "ddp",
                "adam",
                "nesterov",
                "clipping",
                "keras-adam",
                "keras-clipping",
                "accumulation",
                "layers",
                "metrics-of-classes",
                "dropout",
                "batch-normalization",
                "uneven-tail",
                "model-built-late",
                "lost-rank",
            ),
            "smoke.torch-fit": ("fit", "distribution"),
        },
        typical_s=21.0,
    ),
)
"""Trained over processes on the CPU that communicate over 127.0.0.1 (gloo)."""


SCENARIOS = (*ON_JAX, *ON_TORCH)
"""Offered by the entry point ``kdoctor.scenarios``."""
CASES = {check: cases for scenario in SCENARIOS for check, cases in scenario.judged_by.items()}
"""The cases of each check."""
