"""The scenarios that come with kdoctor."""

from __future__ import annotations

from kdoctor.probes.process.launch import target_folder
from kdoctor.smoke.jax import ON_JAX
from kdoctor.smoke.own_model import OWN_DEADLINE_S, OWN_MODEL
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
        tier="quick",
        title="Model, optimizer and metrics are made in the strategy's scope",
        expect=(
            "Trains on every replica that was asked for, each variable mirrored on each; the loss is finite and "
            "falls; weights and losses equal those of the same training on one device."
        ),
        program=_PROGRAMS / "baseline.py",
        cases=("mirrored",),
        deadline_s=_DEADLINE_S,
        typical_s=1.5,
    ),
    Scenario(
        id="smoke.uneven-final-batch",
        version=1,
        kind="edge-case",
        tier="quick",
        title="The final batch does not divide evenly over the replicas",
        expect=(
            "A final batch that feeds every replica leaves finite weights. With drop_remainder=True the weights "
            "equal those of one device. A final batch that leaves a replica empty may turn the weights of a model "
            "with BatchNormalization to NaN: what happens here is reported."
        ),
        program=_PROGRAMS / "uneven_final_batch.py",
        cases=("fed-tail", "starved-tail", "guarded"),
        deadline_s=_DEADLINE_S,
        typical_s=5.0,
    ),
    Scenario(
        id="smoke.model-outside-scope",
        version=1,
        kind="failure-path",
        tier="quick",
        title="The model is made outside the strategy's scope",
        expect=(
            "Compiled inside the scope, fit raises. Compiled outside too, it trains on one replica in silence, and "
            "kdoctor must see that nothing is replicated."
        ),
        program=_PROGRAMS / "model_outside_scope.py",
        cases=("compile-inside", "all-outside"),
        deadline_s=_DEADLINE_S,
        typical_s=2.0,
    ),
    Scenario(
        id="smoke.closed-form",
        version=1,
        kind="baseline",
        tier="standard",
        title="Linear regression against NumPy",
        expect=(
            "Weights, losses and the number of updates are those of gradient descent in NumPy, on one device "
            "and on all replicas."
        ),
        program=_PROGRAMS / "closed_form.py",
        cases=("mirrored",),
        deadline_s=_DEADLINE_S,
        typical_s=1.5,
    ),
    Scenario(
        id="smoke.custom-loop",
        version=1,
        kind="baseline",
        tier="standard",
        title="A training loop written by hand",
        expect=("strategy.run with compute_average_loss ends with the weights and losses of fit on one device."),
        program=_PROGRAMS / "custom_loop.py",
        cases=("mirrored",),
        deadline_s=_DEADLINE_S,
        typical_s=1.5,
    ),
    Scenario(
        id="smoke.cross-device",
        version=1,
        kind="baseline",
        tier="standard",
        title="Each way in which MirroredStrategy adds up gradients",
        expect=(
            "ReductionToOneDevice and, on GPUs, NcclAllReduce give the weights of one device. So does "
            "HierarchicalCopyAllReduce over an even number of replicas; over an odd one it is reported."
        ),
        program=_PROGRAMS / "cross_device.py",
        cases=("hierarchical-copy", "reduction-to-one-device", "nccl"),
        deadline_s=_DEADLINE_S,
        typical_s=3.5,
    ),
    Scenario(
        id="smoke.one-device",
        version=1,
        kind="baseline",
        tier="standard",
        strategy="one-device",
        title="OneDeviceStrategy",
        expect=("fit and a custom loop train exactly as without a strategy."),
        program=_PROGRAMS / "one_device.py",
        cases=("fit", "custom-loop"),
        deadline_s=_DEADLINE_S,
        typical_s=2.0,
    ),
    Scenario(
        id="smoke.multi-worker",
        version=1,
        kind="baseline",
        tier="standard",
        strategy="multi-worker",
        title="MultiWorkerMirroredStrategy over real processes of this machine",
        expect=(
            "Workers that meet over 127.0.0.1 train a custom loop to the weights of one device, and all "
            "report the same losses. What the first of them saves is what all of them hold. Model.fit does "
            "the same where Keras supports it: Keras 3 on TensorFlow does not."
        ),
        program=_PROGRAMS / "multi_worker.py",
        cases=("fit", "custom-loop", "chief-saves"),
        deadline_s=_DEADLINE_S,
        typical_s=5.0,
    ),
    Scenario(
        id="smoke.batch-normalization",
        version=1,
        kind="edge-case",
        tier="standard",
        title="BatchNormalization, plain and synchronised",
        expect=(
            "Plainly it stays finite and deviates from one device, which is evidence; synchronised it equals "
            "one device."
        ),
        program=_PROGRAMS / "batch_normalization.py",
        cases=("plain", "synchronized"),
        deadline_s=_DEADLINE_S,
        typical_s=4.5,
    ),
    Scenario(
        id="smoke.odd-batches",
        version=1,
        kind="edge-case",
        tier="standard",
        title="Batches and data sets of awkward sizes",
        expect=(
            "A data set of unknown size trains without drop_remainder. A batch is shared out among the "
            "replicas, so one meant for each replica is cut. A first batch that does not divide, and a data "
            "set smaller than the number of replicas, raise in Keras 3: what happens here is reported."
        ),
        program=_PROGRAMS / "odd_batches.py",
        cases=("fewer-than-replicas", "first-batch-uneven", "unknown-size", "per-replica-batch"),
        deadline_s=_DEADLINE_S,
        typical_s=5.0,
    ),
    Scenario(
        id="smoke.mixed-precision",
        version=1,
        kind="edge-case",
        tier="standard",
        title="Half precision",
        expect=(
            "Weights near those of one device in single precision, variables in single precision, and a loss "
            "scale that survives."
        ),
        program=_PROGRAMS / "mixed_precision.py",
        cases=("float16", "bfloat16"),
        deadline_s=_DEADLINE_S,
        typical_s=4.0,
    ),
    Scenario(
        id="smoke.state",
        version=1,
        kind="edge-case",
        tier="standard",
        title="Optimizers, metrics and callbacks with state",
        expect=(
            "Adam, momentum, a metric and a callback hold what they hold on one device, and count every step "
            "once. Gradient accumulation does so where Keras supports it over replicas."
        ),
        program=_PROGRAMS / "state.py",
        cases=("adam", "momentum", "accumulation"),
        deadline_s=_DEADLINE_S,
        typical_s=5.0,
    ),
    Scenario(
        id="smoke.persistence",
        version=1,
        kind="edge-case",
        tier="standard",
        title="Saved on all replicas, loaded on fewer",
        expect=(
            "A model file and a weights file saved on all replicas load bit-equal on one, on half and on all. "
            "An interrupted training that BackupAndRestore resumes ends as an undisturbed one."
        ),
        program=_PROGRAMS / "persistence.py",
        cases=("model-file", "weights-file", "backup-and-restore"),
        deadline_s=_DEADLINE_S,
        typical_s=8.0,
    ),
    Scenario(
        id="smoke.determinism",
        version=2,
        kind="edge-case",
        tier="standard",
        title="Two trainings from one seed",
        expect=(
            "They end with the same weights, with a seed alone and with enable_op_determinism. Which operations give "
            "other numbers when they are run again, and what each costs once determinism is insisted on, is evidence."
        ),
        program=_PROGRAMS / "determinism.py",
        cases=("seed", "op-determinism", "operations"),
        deadline_s=_DEADLINE_S,
        typical_s=9.0,
    ),
    Scenario(
        id="smoke.central-storage",
        version=1,
        kind="edge-case",
        tier="full",
        strategy="central-storage",
        title="CentralStorageStrategy",
        expect=(
            "fit and a custom loop end with the weights and losses of one device; what Keras 3 makes of it is reported."
        ),
        program=_PROGRAMS / "central_storage.py",
        cases=("fit", "custom-loop"),
        deadline_s=_DEADLINE_S,
        typical_s=2.5,
    ),
    Scenario(
        id="smoke.parameter-server",
        version=1,
        kind="edge-case",
        tier="full",
        strategy="parameter-server",
        title="ParameterServerStrategy over real processes of this machine",
        expect=(
            "A coordinator, a parameter server and two workers train: the loss falls and the weights stay "
            "finite, by a custom loop, and by Model.fit where Keras supports it: Keras 3 on TensorFlow does "
            "not."
        ),
        program=_PROGRAMS / "parameter_server.py",
        cases=("fit", "custom-loop"),
        deadline_s=_DEADLINE_S,
        typical_s=4.0,
    ),
    Scenario(
        id="smoke.tpu",
        version=1,
        kind="edge-case",
        tier="full",
        strategy="tpu",
        title="TPUStrategy, where there is a TPU",
        expect=("A custom loop ends near the weights of the CPU."),
        program=_PROGRAMS / "tpu.py",
        cases=("custom-loop",),
        deadline_s=_DEADLINE_S,
        typical_s=1.0,
    ),
    Scenario(
        id="smoke.final-batch-sweep",
        version=1,
        kind="edge-case",
        tier="full",
        title="Every size of the final batch",
        expect=(
            "Only a batch that starves a replica, and only with plain BatchNormalization, may ruin weights: "
            "(R - 1) * ceil(n / R) >= n."
        ),
        program=_PROGRAMS / "final_batch_sweep.py",
        cases=("plain", "normalised", "synchronized"),
        deadline_s=_DEADLINE_S,
        typical_s=20.0,
    ),
    Scenario(
        id="smoke.outside-scope",
        version=1,
        kind="failure-path",
        tier="full",
        title="Each part made outside the scope, with SGD and with Adam",
        expect=(
            "A model outside with compile inside raises. An optimizer, a metric or compile outside raises or "
            "is harmless. A model that was loaded outside trains on one device, and kdoctor must see it."
        ),
        program=_PROGRAMS / "outside_scope.py",
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
        deadline_s=_DEADLINE_S,
        typical_s=14.0,
    ),
    Scenario(
        id="smoke.misuse",
        version=1,
        kind="failure-path",
        tier="full",
        title="XLA over replicas, a device that is not there, two strategies",
        expect=(
            "jit_compile=True over replicas, and a model between two strategies, raise. A device that does "
            "not exist should raise too: whether it does, or waits for ever, is reported."
        ),
        program=_PROGRAMS / "misuse.py",
        cases=("jit-compile", "no-such-device", "two-strategies"),
        deadline_s=_DEADLINE_S,
        typical_s=17.0,
    ),
    Scenario(
        id="smoke.lost-worker",
        version=1,
        kind="failure-path",
        tier="full",
        strategy="multi-worker",
        title="A worker dies in the middle, or never comes",
        expect=(
            "The others end with an error within seconds. Whoever waits longer than 25 s is ended, with its "
            "phase and stacks."
        ),
        program=_PROGRAMS / "lost_worker.py",
        cases=("dies", "never-comes"),
        deadline_s=_DEADLINE_S,
        typical_s=37.0,
    ),
    Scenario(
        id="smoke.pairs",
        version=1,
        kind="baseline",
        tier="full",
        title="Each pair of replicas alone",
        expect=(
            "Each pair trains to the weights of one CPU and all-reduces a large message without an error, at the "
            "speed of its equals. Otherwise the one bad link or GPU is named. Skipped below three replicas."
        ),
        program=_PROGRAMS / "pairs.py",
        cases=("alone",),
        deadline_s=1500.0,
        typical_s=1.0,
        pair_s=1.6,
    ),
    Scenario(
        id="smoke.speed",
        version=2,
        kind="baseline",
        tier="full",
        title="Throughput, scaling, all-reduce and input pipeline",
        expect=(
            "Evidence, and no verdict: how fast is fast enough, the job knows. On GPUs the all-reduce has its share "
            "of the bandwidth that the topology promises."
        ),
        program=_PROGRAMS / "speed.py",
        cases=("throughput",),
        deadline_s=_DEADLINE_S,
        typical_s=5.0,
    ),
    *ON_JAX,
    Scenario(
        id=OWN_MODEL,
        version=1,
        kind="baseline",
        tier="job",
        title="The job's own model and data",
        expect=(
            "The model is made in the scope, its batches suit the replicas, and copies of it take a few steps over all "
            "replicas as they do on one device."
        ),
        program=_PROGRAMS / "own_model.py",
        cases=("own-model",),
        deadline_s=OWN_DEADLINE_S,
        typical_s=10.0,
    ),
)
"""Offered by the entry point ``kdoctor.scenarios``."""
