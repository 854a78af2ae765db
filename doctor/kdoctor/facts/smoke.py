"""What a smoke training did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup, Unavailable
from kdoctor.facts.job import JobRun

CaseOutcome = Literal["trained", "raised", "died", "timed-out", "skipped"]
"""How a case ended: it finished; it raised a Python exception; its process died of a signal or exited
without a result; it passed its deadline and was ended; it says itself that it is not for this environment."""


@dataclass(frozen=True, kw_only=True)
class SmokeWorker:
    """One process of a case that trains in several."""

    name: str
    """Its task, as in TF_CONFIG: ``worker 0``, ``ps 0``."""
    outcome: CaseOutcome
    """How it ended; ``timed-out`` is one that the others waited for, or that waited for them, and was ended."""
    phase: str | None = None
    """The last phase that it entered, as in ``SmokeCase``."""
    finished: str | None = None
    """The last phase that it finished."""
    steps: int | None = None
    """Training steps that it finished."""
    error_type: str | None = None
    """Class of the exception, for ``raised``."""
    error_message: str | None = None
    """The exception's first lines."""
    exit_code: int | None = None
    """Exit status of the process, for ``died``; None where a signal ended it."""
    signal: str | None = None
    """Name of the signal that ended it, for ``died``."""
    losses: tuple[float | None, ...] = ()
    """Loss of each epoch, as this worker saw it."""
    weight_deviation: float | None = None
    """Largest absolute difference of any of its weights from the same training on one device."""
    seconds: float | None = None
    """Wall time of the process."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The model's variables after the training, read replica by replica."""

    variables: int
    """Number of trainable variables."""
    mirrored: int
    """How many of them have a copy on the device of every replica."""
    sharded: int = 0
    """How many of them are cut up, so that every device holds a share and none the whole."""
    nonfinite: tuple[str, ...]
    """Names of the variables (trainable or not) that hold a NaN or an infinity on any replica."""
    replicas_agree: bool | None
    """Whether the copies on all replicas are equal; None where nothing is mirrored."""


PairOutcome = Literal["trained", "raised", "died", "timed-out", "not-tested"]
"""How a pair of replicas ended: as a case does, or it was not come to."""


@dataclass(frozen=True, kw_only=True)
class SmokePair:
    """Two replicas that trained alone, in a process of their own."""

    first: int
    """Place of the one in ``SmokeCase.devices``."""
    second: int
    """Place of the other; it is greater."""
    outcome: PairOutcome
    phase: str | None = None
    """The last phase that it entered, as in ``SmokeCase``; the last of all is all-reduce."""
    finished: str | None = None
    """The last phase that it finished."""
    steps: int | None = None
    """Training steps that it finished."""
    error_type: str | None = None
    """Class of the exception, for ``raised``."""
    error_message: str | None = None
    """The exception's first lines."""
    exit_code: int | None = None
    """Exit status of the process, for ``died``; None where a signal ended it."""
    signal: str | None = None
    """Name of the signal that ended it, for ``died``."""
    stacks: str | None = None
    """Python stacks of all threads, where it crashed or was ended."""
    stderr_tail: str | None = None
    """Last lines of its error output, where it did not finish."""
    log_lines: tuple[str, ...] = ()
    """The last lines in which NCCL or TensorFlow's native code complain, where it did not finish."""
    weights: Weights | None = None
    weight_deviation: float | None = None
    """Largest absolute difference of any weight, on either replica, from the same training on one CPU."""
    message_bytes: int | None = None
    """Size of the large message that was all-reduced."""
    wrong_values: int | None = None
    """How many of its 32-bit values were not the exact sum, over both replicas."""
    bytes_per_s: float | None = None
    """Speed of that all-reduce: its size over the time, which over two replicas is what each link carries one way."""
    seconds: float | None = None
    """Wall time of the process."""


@dataclass(frozen=True, kw_only=True)
class SmokeCase:
    """One training, in a process of its own."""

    name: str
    """The case's name within its scenario, for example ``guarded``."""
    outcome: CaseOutcome
    phase: str | None = None
    """The last phase that was entered: import (of the scenario's program), strategy, reference (the same training on
    one device), build, data (it is shared out), trace, first step, step 2 and so on, between steps, save, load,
    inspect; train where the steps cannot be told apart."""
    finished: str | None = None
    """The last phase that was finished; ``step 7`` while it trains step 8 or hangs in it."""
    steps: int | None = None
    """Training steps that were finished, over all epochs."""
    skip_reason: str | None = None
    """Why it is not for this environment, for ``skipped``."""
    error_type: str | None = None
    """Class of the exception, for ``raised``."""
    error_message: str | None = None
    """The exception's first lines."""
    exit_code: int | None = None
    """Exit status of the process; None where a signal ended it."""
    signal: str | None = None
    """Name of the signal that ended it, for example ``SIGSEGV``."""
    stacks: str | None = None
    """Python stacks of all threads, where it crashed or passed its deadline."""
    stderr_tail: str | None = None
    """Last lines of its error output, where it did not finish."""
    log_lines: tuple[str, ...] = ()
    """The last lines in which NCCL or TensorFlow's native code complain, where it did not finish."""
    workers: tuple[SmokeWorker, ...] = ()
    """Its processes, where it trains in several."""
    pairs: tuple[SmokePair, ...] = ()
    """Every pair of its replicas, where each trains alone."""
    strategy: str | None = None
    """Class name of the strategy that was made."""
    replicas: int | None = None
    """``strategy.num_replicas_in_sync``; on JAX the number of devices in the mesh."""
    devices: tuple[str, ...] = ()
    """Devices of the replicas, in TensorFlow's names; on JAX those of the mesh, in Keras's."""
    bus_ids: tuple[str | None, ...] = ()
    """PCI addresses of those devices in sysfs form, where they are GPUs and were asked: TensorFlow's order is CUDA's,
    which need not be nvidia-smi's."""
    optimizer: str | None = None
    examples: int | None = None
    """Examples per epoch."""
    global_batch: int | None = None
    """Examples per step over all replicas."""
    final_batch: int | None = None
    """Examples in an epoch's last step."""
    losses: tuple[float | None, ...] = ()
    """Loss of each epoch as ``fit`` reported it; None stands for a NaN or an infinity."""
    reference_losses: tuple[float | None, ...] = ()
    """The same of the training on one device."""
    weights: Weights | None = None
    weight_deviation: float | None = None
    """Largest absolute difference of any weight (trainable or not, on any replica) from the same training on
    one device; None where it was not compared or is not finite."""
    measures: Mapping[str, float | None] = field(default_factory=dict)
    """What only this scenario measures, by the names that its program documents; None is not finite."""
    job: JobRun | None = None
    """What was found of the user's own model and data, for the scenario that examines them."""
    build_s: float | None = None
    """Seconds to make the strategy, the model and the optimizer."""
    first_step_s: float | None = None
    """Seconds of the first step, most of it tracing."""
    step_s: float | None = None
    """Median seconds of a step after the first epoch."""
    peak_memory_bytes: int | None = None
    """Largest resident set of the case's process."""
    seconds: float | None = None
    """Wall time of the case's process."""


@dataclass(frozen=True, kw_only=True)
class SmokeRun(FactGroup):
    """One scenario's run: the child that imported TensorFlow or JAX, and its cases."""

    group: ClassVar[str] = "smoke_run"

    scenario: str
    """The scenario's id."""
    version: int
    """The scenario's version: what it measures changes only with it."""
    devices_kind: Literal["gpu", "cpu"]
    """What the replicas were to run on: all visible GPUs, or logical CPU devices."""
    replicas_requested: int | None
    """Number of replicas asked for; None for every GPU that TensorFlow lists."""
    tensorflow: str | None = None
    """``tensorflow.__version__``, as imported."""
    jax: str | None = None
    """``jax.__version__``, as imported, where the scenario computes with JAX."""
    keras: str | None = None
    """Name and version of the Keras that was imported, with TensorFlow that which ``tf.keras`` is: ``keras 3.15.1``."""
    gpus_seen: int | None = None
    """Number of physical GPUs that TensorFlow lists; None on a CPU run, which hides them."""
    import_s: float | None = None
    """Seconds of ``import tensorflow``."""
    failure: str | None = None
    """Why no case could run, or why some are missing (TensorFlow did not import, the child died), if so."""
    stacks: str | None = None
    """Python stacks of the child, where it hung or crashed before any case."""
    stderr_tail: str | None = None
    """Last lines of the child's error output, where it failed."""
    cases: tuple[SmokeCase, ...] = ()
    seconds: float | None = None
    """Wall time of the whole scenario."""

    def case(self, name: str) -> SmokeCase | None:
        """The case of that name, or None if it did not run."""
        return next((case for case in self.cases if case.name == name), None)


@dataclass(frozen=True, kw_only=True)
class SmokeRuns(FactGroup):
    """All scenarios that were run."""

    group: ClassVar[str] = "smoke"

    runs: Mapping[str, SmokeRun | Unavailable] = field(default_factory=dict)
    """Scenario id to its run. A scenario that is not here was not asked for."""
