"""Facts about the user's model and data (``kdoctor check --model --data``, ``kdoctor.preflight``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

JobPart = Literal["model", "data"]
Place = Literal["scope", "outside", "another strategy"]
"""Where an object was made: in the scope of the examined strategy, in no scope, or in another strategy's."""


@dataclass(frozen=True, kw_only=True)
class JobProblem:
    """Why the model or the data could not be examined."""

    part: JobPart
    message: str
    """One sentence that names the callable or the object."""


@dataclass(frozen=True, kw_only=True)
class JobModel:
    """The model before any training."""

    name: str
    """Its class."""
    made_in: Place
    built: bool
    """Whether its variables exist; if not, ``fit`` makes them."""
    compiled: bool
    compiled_in: Place | None = None
    """Where its optimizer was made; None if it has none."""
    trainable: int = 0
    mirrored: int = 0
    """Number of trainable variables with a copy on the device of every replica."""
    not_mirrored: tuple[str, ...] = ()
    normalisations: tuple[str, ...] = ()
    """BatchNormalization layers that train on the moments of one replica's share."""
    optimizer: str | None = None
    learning_rate: float | None = None
    """None if a schedule sets it."""
    default_learning_rate: float | None = None
    """The default of the optimizer's class."""
    schedule: str | None = None
    """Class of the learning rate schedule."""
    keras: str | None = None
    """Package and version of the model's Keras: ``keras 3.15.1``, ``tf_keras 2.21.0``."""
    clipping: tuple[str, ...] | None = None
    """How the optimizer clips gradients: ``clipnorm=1``; empty if it does not, None if it does not report it."""
    steps_per_execution: int | None = None
    """None if ``compile`` does not report a number."""
    random_layers: tuple[str, ...] | None = None
    """Layers that draw random numbers during training; None if the layers are not known before the first batch."""


@dataclass(frozen=True, kw_only=True)
class JobData:
    """The data, read without changing the user's object."""

    kind: Literal["tf.data", "PyDataset", "arrays", "generator"]
    unread: str | None = None
    """Why the data was not read: reading would use it up."""
    problem: str | None = None
    """The problem with its elements: there are none, they are ragged, or reading them raises."""
    endless: bool | None = None
    """Whether the data is infinite; None if unknown."""
    batches: int | None = None
    """Batches per epoch; None if they were not all counted."""
    steps_per_epoch: int | None = None
    """The ``steps_per_epoch`` that the user passes to ``fit``."""
    batch: int | None = None
    """Examples in the first batch."""
    final_batch: int | None = None
    """Examples in the last one."""
    full_batches_only: bool | None = None
    """Whether a short final batch is impossible (``drop_remainder=True``)."""
    prefetched: bool | None = None
    """Whether the pipeline ends in a prefetch; None for other data than ``tf.data``."""
    seconds_per_batch: float | None = None
    """Seconds per batch of the input pipeline, after the first batch."""


@dataclass(frozen=True, kw_only=True)
class JobMemory:
    """Memory of one GPU."""

    device: str
    peak_bytes: int
    """Peak memory in use by TensorFlow."""
    limit_bytes: int
    """Memory that TensorFlow may use."""


@dataclass(frozen=True, kw_only=True)
class JobTraining:
    """A few steps of a copy of the model on all replicas, and of another copy on one device."""

    steps: int
    not_run: str | None = None
    """Why nothing was trained."""
    problem: str | None = None
    """The error that the training on the replicas raised."""
    own_losses: tuple[float | None, ...] = ()
    """Loss after each step with the job's optimizer, on all replicas."""
    nonfinite: tuple[str, ...] = ()
    """Variables that held a NaN or an infinity after those steps."""
    step_s: float | None = None
    """Median seconds of a step after the first, with the job's optimizer."""
    not_compared: str | None = None
    """Why the weights were not compared with one device."""
    losses: tuple[float | None, ...] = ()
    """Loss after each step with SGD, on all replicas."""
    reference_losses: tuple[float | None, ...] = ()
    """Loss after each step with SGD, on one device."""
    deviation: float | None = None
    """Largest difference of a weight from one device's, relative to the largest change of its variable there, or to a
    tenth of the largest change of any variable."""
    noise: float | None = None
    """The same between two trainings on one device, if measured; more than rounding means randomness."""
    stilled: tuple[str, ...] = ()
    """Layers with random numbers, which ran as at inference in the comparison."""
    memory: tuple[JobMemory, ...] = ()
    """Empty if no replica is on a GPU."""


@dataclass(frozen=True, kw_only=True)
class JobRun:
    """The examination of the job."""

    problem: JobProblem | None = None
    model: JobModel | None = None
    data: JobData | None = None
    training: JobTraining | None = None
