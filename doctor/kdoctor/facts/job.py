"""What was found of the user's own model and data (``kdoctor check --model --data``, ``kdoctor.preflight``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

JobPart = Literal["model", "data"]
Place = Literal["scope", "outside", "another strategy"]
"""Where something was made: in the scope of the strategy that is asked about, in none, or in that of another."""


@dataclass(frozen=True, kw_only=True)
class JobProblem:
    """Why the model or the data cannot be examined."""

    part: JobPart
    message: str
    """One sentence that names the callable or the object."""


@dataclass(frozen=True, kw_only=True)
class JobModel:
    """The model, as it was before anything was trained."""

    name: str
    """Its class."""
    made_in: Place
    built: bool
    """Whether it has its variables already; otherwise ``fit`` makes them."""
    compiled: bool
    compiled_in: Place | None = None
    """Where its optimizer was made; None where it has none."""
    trainable: int = 0
    """Number of trainable variables."""
    mirrored: int = 0
    """How many of them have a copy on the device of every replica."""
    not_mirrored: tuple[str, ...] = ()
    """Names of the others."""
    normalisations: tuple[str, ...] = ()
    """BatchNormalization layers that train on the moments of one replica's share."""
    optimizer: str | None = None
    """Class of the optimizer."""
    learning_rate: float | None = None
    """None where a schedule sets it."""
    default_learning_rate: float | None = None
    """What the optimizer's class takes where nothing is said."""
    schedule: str | None = None
    """Class of the learning rate's schedule."""


@dataclass(frozen=True, kw_only=True)
class JobData:
    """The data, read through a view of its own."""

    kind: Literal["tf.data", "PyDataset", "arrays", "generator"]
    unread: str | None = None
    """Why nothing was read of it: reading would use it up."""
    problem: str | None = None
    """What is wrong with its elements: there are none, they are ragged, reading them raises."""
    endless: bool | None = None
    """None where that cannot be told."""
    batches: int | None = None
    """Batches of an epoch; None where they were not counted to the end."""
    steps_per_epoch: int | None = None
    """What ``fit`` is to be told, as the user says."""
    batch: int | None = None
    """Examples in the first batch."""
    final_batch: int | None = None
    """Examples in the last one."""
    full_batches_only: bool | None = None
    """Whether a short final batch is impossible (``drop_remainder=True``)."""
    prefetched: bool | None = None
    """Whether the pipeline ends in a prefetch; None for what is no ``tf.data``."""
    seconds_per_batch: float | None = None
    """Of the pipeline alone, after the first batch."""


@dataclass(frozen=True, kw_only=True)
class JobMemory:
    """Memory of one GPU."""

    device: str
    peak_bytes: int
    """The most that TensorFlow had in use at once."""
    limit_bytes: int
    """What TensorFlow may use."""


@dataclass(frozen=True, kw_only=True)
class JobTraining:
    """A few steps of a copy of the model over all replicas, and of another on one device."""

    steps: int
    not_run: str | None = None
    """Why nothing was trained."""
    problem: str | None = None
    """What the training over the replicas raised."""
    own_losses: tuple[float | None, ...] = ()
    """Loss after each step with the job's own optimizer, over all replicas."""
    nonfinite: tuple[str, ...] = ()
    """Variables that held a NaN or an infinity after those steps."""
    step_s: float | None = None
    """Median seconds of a step after the first, with the job's own optimizer."""
    not_compared: str | None = None
    """Why there is no comparison with one device."""
    losses: tuple[float | None, ...] = ()
    """Loss after each step with SGD, over all replicas."""
    reference_losses: tuple[float | None, ...] = ()
    """The same on one device."""
    deviation: float | None = None
    """Largest difference of a weight from one device's, over the largest way that a weight went there."""
    noise: float | None = None
    """The same between two trainings on one device, where that was measured: more than rounding is randomness."""
    stilled: tuple[str, ...] = ()
    """Layers with random numbers, which ran as at inference in the comparison."""
    memory: tuple[JobMemory, ...] = ()
    """Empty where no replica is on a GPU."""


@dataclass(frozen=True, kw_only=True)
class JobRun:
    """What is known of the job."""

    problem: JobProblem | None = None
    model: JobModel | None = None
    data: JobData | None = None
    training: JobTraining | None = None
