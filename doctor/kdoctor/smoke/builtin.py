"""The built-in scenarios."""

from kdoctor.smoke.definition import HOT_S, SAME_BITS_EXPECTED, SPEED_EXPECTED
from kdoctor.smoke.definition import define as _scenario
from kdoctor.smoke.feature_scenarios import FEATURES
from kdoctor.smoke.model_scenarios import MODELS

SCENARIOS = (
    _scenario(
        "smoke.baseline",
        tier="quick",
        title="Model, optimizer and metrics created in the strategy's scope",
        expect="Trains on all requested replicas, with every variable mirrored on each. The loss is finite and falls. "
        "Weights and losses match the same training on one device.",
        cases=("mirrored",),
        typical_s=1.5,
    ),
    _scenario(
        "smoke.uneven-final-batch",
        kind="edge-case",
        tier="quick",
        title="A final batch that does not divide evenly over the replicas",
        expect="A final batch that feeds every replica keeps the weights finite. With drop_remainder=True the weights "
        "match one device. A final batch that leaves a replica empty may turn the weights of a model with "
        "BatchNormalization into NaN; the result is reported.",
        cases={"smoke.uneven-final-batch": ("fed-tail", "guarded"), "smoke.starved-replica": ("starved-tail",)},
        typical_s=5.0,
    ),
    _scenario(
        "smoke.model-outside-scope",
        kind="failure-path",
        tier="quick",
        title="A model created outside the strategy's scope",
        expect="If compiled inside the scope, fit raises an error. If compiled outside too, it trains on one replica "
        "without an error, and kdoctor must detect that no variable is mirrored.",
        cases=("compile-inside", "all-outside"),
        typical_s=2.0,
    ),
    _scenario(
        "smoke.closed-form",
        title="Linear regression compared with NumPy",
        expect="Weights, losses and the number of updates match gradient descent in NumPy, on one device and on all "
        "replicas.",
        cases=("mirrored",),
        typical_s=1.5,
    ),
    _scenario(
        "smoke.custom-loop",
        title="A custom training loop",
        expect="strategy.run with compute_average_loss matches the weights and losses of fit on one device.",
        cases=("mirrored",),
        typical_s=1.5,
    ),
    _scenario(
        "smoke.cross-device",
        title="MirroredStrategy with each of its cross_device_ops",
        expect="ReductionToOneDevice and, on GPUs, NcclAllReduce match one device. So does HierarchicalCopyAllReduce "
        "on an even number of replicas; on an odd number the result is reported.",
        cases={
            "smoke.hierarchical-copy": ("hierarchical-copy",),
            "smoke.cross-device": ("reduction-to-one-device", "nccl"),
        },
        typical_s=3.5,
    ),
    _scenario(
        "smoke.one-device",
        strategy="one-device",
        title="OneDeviceStrategy",
        expect="fit and a custom loop train exactly as without a strategy.",
        cases=("fit", "custom-loop"),
        typical_s=2.0,
    ),
    _scenario(
        "smoke.multi-worker",
        strategy="multi-worker",
        title="MultiWorkerMirroredStrategy with several processes on this machine",
        expect="Workers that connect over 127.0.0.1 train a custom loop to the weights of one device, and report the "
        "same losses. The chief saves the weights that every worker holds. Model.fit does the same where Keras "
        "supports it; Keras 3 on TensorFlow does not.",
        cases={"smoke.multi-worker-fit": ("fit",), "smoke.multi-worker": ("custom-loop", "chief-saves")},
        typical_s=5.0,
    ),
    _scenario(
        "smoke.multi-worker-features",
        kind="edge-case",
        strategy="multi-worker",
        title="Features of real jobs in custom loops over two workers",
        expect="Optimizers that are built in the scope, metrics, and clipping after the reduction match one device. "
        "So do Adam that the first step builds, and an optimizer that clips. Dropout draws a different mask on each "
        "worker.",
        cases=(
            "adam-built-late",
            "adam-built-in-scope",
            "nesterov",
            "amsgrad",
            "centered-rmsprop",
            "metrics-of-classes",
            "global-clipnorm",
            "clip-after-reduction",
            "dropout",
            "dropout-per-replica",
        ),
        typical_s=12.0,
    ),
    _scenario(
        "smoke.batch-normalization",
        kind="edge-case",
        title="BatchNormalization, plain and synchronized",
        expect="Plain BatchNormalization stays finite and differs from one device; the difference is reported as "
        "evidence. Synchronized BatchNormalization matches one device.",
        cases=("plain", "synchronized"),
        typical_s=4.5,
    ),
    _scenario(
        "smoke.odd-batches",
        kind="edge-case",
        title="Batches and datasets of unusual sizes",
        expect="A dataset of unknown size trains without drop_remainder. Every batch is split among the replicas, even "
        "one meant for each replica. A first batch that does not divide, and a dataset smaller than the number of "
        "replicas, raise in Keras 3; the result is reported.",
        cases=("unknown-size", "per-replica-batch"),
        typical_s=5.0,
    ),
    _scenario(
        "smoke.mixed-precision",
        kind="edge-case",
        title="Mixed precision",
        expect="Weights are close to those of one device in float32, variables are float32, and the loss scale does "
        "not collapse.",
        cases=("float16", "bfloat16"),
        typical_s=4.0,
    ),
    _scenario(
        "smoke.state",
        kind="edge-case",
        title="Optimizers, metrics and callbacks with state",
        expect="Adam, momentum, a metric and a callback have the same state as on one device, and count every step "
        "once. So does gradient accumulation, where Keras supports it on several replicas.",
        cases=("adam", "momentum"),
        typical_s=5.0,
    ),
    *FEATURES,
    *MODELS,
    _scenario(
        "smoke.persistence",
        kind="edge-case",
        title="Saving on all replicas and loading on fewer",
        expect="A model file and a weights file saved on all replicas load bit-equal on one, on half and on all. A "
        "training that BackupAndRestore resumes ends like an uninterrupted one.",
        cases=("model-file", "weights-file", "backup-and-restore"),
        typical_s=8.0,
    ),
    _scenario(
        "smoke.determinism",
        kind="edge-case",
        version=2,
        title="Two trainings with the same seed",
        expect="Both end with the same weights, with a seed alone and with enable_op_determinism. Operations that "
        "differ when repeated, and the cost of determinism for each, are reported as evidence.",
        cases=("seed", "op-determinism", "operations"),
        typical_s=9.0,
    ),
    _scenario(
        "smoke.central-storage",
        kind="edge-case",
        tier="full",
        strategy="central-storage",
        title="CentralStorageStrategy",
        expect="fit and a custom loop match the weights and losses of one device. What Keras 3 does is reported.",
        cases=("fit", "custom-loop"),
        typical_s=2.5,
    ),
    _scenario(
        "smoke.parameter-server",
        kind="edge-case",
        tier="full",
        strategy="parameter-server",
        title="ParameterServerStrategy with several processes on this machine",
        expect="A coordinator, a parameter server and two workers train with a custom loop: the loss falls and the "
        "weights stay finite. Model.fit does the same where Keras supports it; Keras 3 on TensorFlow does not.",
        cases={"smoke.parameter-server-fit": ("fit",), "smoke.parameter-server": ("custom-loop",)},
        typical_s=4.0,
    ),
    _scenario(
        "smoke.tpu",
        kind="edge-case",
        tier="full",
        strategy="tpu",
        title="TPUStrategy, if a TPU is available",
        expect="A custom loop ends with weights close to those of the CPU.",
        cases=("custom-loop",),
        typical_s=1.0,
    ),
    _scenario(
        "smoke.final-batch-sweep",
        kind="edge-case",
        tier="full",
        title="Every size of the final batch",
        expect="Weights become NaN only with plain BatchNormalization, and only for a batch of n examples that leaves "
        "one of R replicas empty: (R - 1) * ceil(n / R) >= n.",
        cases=("plain", "normalised", "synchronized"),
        typical_s=20.0,
    ),
    _scenario(
        "smoke.outside-scope",
        kind="failure-path",
        tier="full",
        title="Each part created outside the scope, with SGD and with Adam",
        expect="A model outside with compile inside raises. An optimizer, a metric or compile outside raises or is "
        "harmless. A model loaded outside trains on one device, and kdoctor must detect it.",
        cases=(
            "model-sgd",
            "model-adam",
            "optimizer-sgd",
            "optimizer-adam",
            "metric-sgd",
            "metric-adam",
            "compile-sgd",
            "compile-adam",
            "loaded-model-sgd",
            "loaded-model-adam",
        ),
        typical_s=14.0,
    ),
    _scenario(
        "smoke.misuse",
        kind="failure-path",
        tier="full",
        title="XLA on several replicas, a missing device, two strategies",
        expect="jit_compile=True on several replicas, and a model used in two strategies, raise. A device that does "
        "not exist should raise too; whether it does, or waits forever, is reported.",
        cases={"smoke.misuse": ("jit-compile", "two-strategies"), "smoke.no-such-device": ("no-such-device",)},
        typical_s=17.0,
    ),
    _scenario(
        "smoke.lost-worker",
        kind="failure-path",
        tier="full",
        strategy="multi-worker",
        title="A worker that dies during training, or never starts",
        expect="The other workers end with an error within seconds. A worker that waits longer than 25 s is ended, and "
        "its phase and stacks are reported.",
        cases=("dies", "never-comes"),
        typical_s=37.0,
    ),
    _scenario(
        "smoke.pairs",
        tier="full",
        title="Each pair of replicas alone",
        expect="Each pair trains to the weights of one CPU and all-reduces a large message exactly, as fast as the "
        "other pairs of its topology level. If not, the bad link or GPU is named. Skipped on fewer than three "
        "replicas.",
        cases=("alone",),
        deadline_s=1500.0,
        typical_s=1.0,
        pair_s=1.6,
    ),
    _scenario(
        "smoke.speed",
        tier="full",
        version=2,
        title="Throughput, scaling, all-reduce and input pipeline",
        expect="Reported as evidence, because how fast is fast enough depends on the job. On GPUs the all-reduce "
        "reaches its share of the bandwidth of the links.",
        cases=("throughput",),
        typical_s=5.0,
    ),
    _scenario(
        "smoke.same-bits",
        title="The same programs on every device, compared bit by bit",
        expect=SAME_BITS_EXPECTED,
        cases=("all-devices",),
        settings={"hot_s": HOT_S},
        lasts="hot_s",
        typical_s=5.0,
    ),
    _scenario(
        "smoke.compute",
        tier="full",
        strategy="one-device",
        title="Matrix products and copies on each device",
        expect=SPEED_EXPECTED,
        cases=("each-device",),
        deadline_s=900.0,
        typical_s=3.0,
    ),
)
"""Offered by the entry point ``kdoctor.scenarios``."""
