"""The scenarios of Keras 3 on torch."""

from functools import partial
from pathlib import Path

from kdoctor.smoke.definition import define as define_anywhere

define = partial(define_anywhere, folder=Path(__file__).parent / "target")

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
