"""The built-in scenarios about features of Keras that a job may use."""

from kdoctor.smoke.definition import define

OPTIMIZERS = (
    "sgd",
    "momentum",
    "adam",
    "adamw",
    "adamax",
    "adadelta",
    "adagrad",
    "rmsprop",
    "nadam",
    "lion",
    "adafactor",
    "ftrl",
    "muon",
    "lamb",
)
"""One optimizer for each class that Keras ships, and SGD with state."""

FEATURES = (
    define(
        "smoke.silent-features",
        kind="edge-case",
        tier="quick",
        title="Gradient clipping and Dropout, which Keras 3 gets wrong without an error",
        expect="Clipped gradients match one device, and each replica has its own Dropout mask. What Keras 3 does "
        "instead is reported.",
        cases=(),  # those of known defects
        typical_s=2.0,
    ),
    define(
        "smoke.features",
        kind="edge-case",
        version=3,
        title="Other ways of clipping, steps_per_execution, and alternatives to these and to random layers",
        expect="Clipping and several steps per execution match one device. What Keras 3 does instead is reported, and "
        "the alternatives work. Those to random layers draw different numbers on each replica.",
        cases=(),  # those of known defects
        typical_s=11.0,
    ),
    define(
        "smoke.optimizers",
        kind="edge-case",
        title="Every optimizer that Keras ships",
        expect="Weights, losses and the optimizer's variables match one device. An optimizer that this Keras lacks is "
        "skipped.",
        cases=(*OPTIMIZERS, "nesterov", "amsgrad", "centered-rmsprop", "several-optimizers", "schedule-free-adamw"),
        typical_s=24.0,
    ),
    define(
        "smoke.optimizer-options",
        kind="edge-case",
        title="Weight decay, moving averages, schedules of the learning rate, and loss scales",
        expect="Weights, losses and the optimizer's variables match one device. A step in which the gradients of one "
        "replica overflow is left out on all replicas.",
        cases=("weight-decay", "ema", "exponential-decay", "piecewise-decay", "cosine-decay", "loss-scale"),
        typical_s=10.0,
    ),
    define(
        "smoke.custom-loop-optimizers",
        kind="edge-case",
        title="Custom loops with every optimizer, built in the scope or by the first step",
        expect="strategy.run matches fit on one device, including the optimizer's variables. What Keras 3 does where "
        "the first step builds the optimizer is reported.",
        cases={
            "smoke.custom-loop-optimizers": tuple(f"{name}-built-in-scope" for name in OPTIMIZERS),
            "smoke.optimizer-built-late": tuple(f"{name}-built-late" for name in OPTIMIZERS),
        },
        typical_s=32.0,
    ),
)
"""Part of the built-in scenarios."""
