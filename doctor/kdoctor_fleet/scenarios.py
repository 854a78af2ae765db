"""The trainings over several nodes. They wait for other workers, so they run only if they are named."""

from pathlib import Path

from kdoctor.smoke.definition import define

_PROGRAMS = Path(__file__).parent / "target"

KERAS = define(
    "smoke.across-nodes",
    tier="job",
    strategy="multi-worker",
    title="MultiWorkerMirroredStrategy over the nodes of TF_CONFIG",
    expect="The workers train a custom loop to the weights and losses of one device, and all-reduce a large "
    "message exactly. Skipped without TF_CONFIG.",
    cases=("custom-loop",),
    typical_s=10.0,
    folder=_PROGRAMS,
)
JAX = define(
    "smoke.across-nodes-jax",
    tier="job",
    strategy="data-parallel",
    framework="jax",
    title="keras.distribution over the nodes of TF_CONFIG on JAX",
    expect="After keras.distribution.initialize, DataParallel trains to the weights and losses of one device. "
    "Skipped without TF_CONFIG.",
    cases=("data-parallel",),
    typical_s=10.0,
    folder=_PROGRAMS,
)
ACROSS_NODES = (KERAS, JAX)
