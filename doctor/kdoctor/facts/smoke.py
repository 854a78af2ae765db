"""The results of the smoke trainings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from kdoctor.facts.base import FactGroup, Unavailable
from kdoctor.facts.bounds import POSITIVE, SIGNED, Reason
from kdoctor.facts.packages import PackageFault

CaseOutcome = Literal["trained", "raised", "died", "timed-out", "skipped"]
"""How a case ended: it finished; it raised a Python exception; its process died of a signal or exited without a
result; it passed its deadline and was ended; it does not apply to this environment."""


@dataclass(frozen=True, kw_only=True)
class _Process:
    """How far the process of a training came."""

    phase: str | None = None
    """The last phase that it entered: import (of the scenario's program), strategy, reference (the same training on one
    device), build, data, trace, first step, step 2 and so on, between steps, save, load, inspect; train if the steps
    cannot be distinguished."""
    finished: str | None = None
    """The last phase that it finished; ``step 7`` while it trains step 8 or hangs in it."""
    steps: int | None = None
    """Training steps that it finished, over all epochs."""
    error_type: Reason = None
    """Class of the exception, for ``raised``."""
    error_message: Reason = None
    """The exception's first lines."""
    exit_code: Annotated[int | None, SIGNED] = None
    """Exit status of the process; None where a signal ended it."""
    signal: str | None = None
    """Name of the signal that ended it, for example ``SIGSEGV``."""
    seconds: float | None = None
    """Its wall time."""


@dataclass(frozen=True, kw_only=True)
class SmokeWorker(_Process):
    """One process of a case that trains in several."""

    name: str
    """Its task, as in TF_CONFIG: ``worker 0``, ``ps 0``."""
    outcome: CaseOutcome
    """How it ended; ``timed-out`` if it waited for others, or they for it, until it was ended."""
    losses: tuple[float | None, ...] = ()
    """Loss of each epoch in this worker."""
    weight_deviation: float | None = None
    """Largest absolute difference of any of its weights from the same training on one device."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The model's variables after the training, read from every replica."""

    variables: int
    mirrored: int
    """How many of them have a copy on the device of every replica."""
    sharded: int = 0
    """How many of them are sharded: every device holds a part and none the whole."""
    nonfinite: tuple[str, ...]
    """Names of the variables (trainable or not) that hold a NaN or an infinity on any replica."""
    replicas_agree: bool | None
    """Whether the copies on all replicas are equal; None if nothing is mirrored."""


PairOutcome = Literal["trained", "raised", "died", "timed-out", "not-tested"]
"""How a pair of replicas ended: like a case, or it was not reached."""


@dataclass(frozen=True, kw_only=True)
class SmokePair(_Process):
    """Two replicas that trained without the others, in a separate process. Its final phase is all-reduce.

    Fields without a description are as in ``SmokeCase``.
    """

    first: int
    """Index of the first in ``SmokeCase.devices``."""
    second: int
    """Index of the second; always greater than ``first``."""
    outcome: PairOutcome
    stacks: Reason = None
    stderr_tail: Reason = None
    log_lines: tuple[str, ...] = ()
    weights: Weights | None = None
    weight_deviation: float | None = None
    """Largest absolute difference of any weight, on either replica, from the same training on one CPU."""
    message_bytes: int | None = None
    """Size of the large all-reduced message."""
    wrong_values: int | None = None
    """Number of its 32-bit values that were not the exact sum, over both replicas."""
    bytes_per_s: float | None = None
    """Speed of that all-reduce: size over time, which is the bandwidth in each direction for two replicas."""


@dataclass(frozen=True, kw_only=True)
class BitDifference:
    """An output of a fixed program that a device computed with other bits than an equal one, or than before."""

    program: str
    device: int
    """Index in ``SmokeCase.devices``."""
    other: int | None
    """Index of the equal device that it was compared with; None if the device differs from its own first round."""
    elements: int
    """Elements of the output."""
    differing: int
    """Elements that differ; 0 if the device found a difference that the output does not have."""
    first: int | None
    """Index of the first element that differs."""
    rounds: int
    """Rounds in which it differed."""
    found_in: int
    """The first of these rounds, counted from 1."""
    repeats: bool | None = None
    """Whether the device computed other bits each time when it ran the program again at once."""
    decided: bool = True
    """Whether most devices of the model agree with ``other``. If not, either of the two may be wrong."""


@dataclass(frozen=True, kw_only=True)
class SmokeCase(_Process):
    """One training, in a separate process."""

    name: str
    """The case's name within its scenario, for example ``guarded``."""
    outcome: CaseOutcome
    skip_reason: Reason = None
    """Why it does not apply to this environment, for ``skipped``."""
    stacks: Reason = None
    """Python stacks of all threads, if it crashed or passed its deadline."""
    stderr_tail: Reason = None
    """Last lines of its error output, if it did not finish."""
    log_lines: tuple[str, ...] = ()
    """The last lines in which NCCL or TensorFlow's native code report errors, if it did not finish."""
    workers: tuple[SmokeWorker, ...] = ()
    """Its processes, if it trains in several."""
    pairs: tuple[SmokePair, ...] = ()
    """Every pair of its replicas, if each trains separately."""
    strategy: str | None = None
    """Class name of the strategy."""
    replicas: Annotated[int | None, POSITIVE] = None
    """``strategy.num_replicas_in_sync``; on JAX the number of devices in the mesh."""
    devices: tuple[str, ...] = ()
    """Devices of the replicas by TensorFlow's names; on JAX those of the mesh, by Keras's names."""
    bus_ids: tuple[str | None, ...] = ()
    """PCI addresses of those devices in sysfs form, if they are GPUs. TensorFlow's order is CUDA's and may differ from
    nvidia-smi's."""
    optimizer: str | None = None
    examples: int | None = None
    """Examples per epoch."""
    global_batch: int | None = None
    """Examples per step over all replicas."""
    final_batch: int | None = None
    """Examples in an epoch's last step."""
    losses: tuple[float | None, ...] = ()
    """Loss of each epoch as reported by ``fit``; None for a NaN or an infinity."""
    reference_losses: tuple[float | None, ...] = ()
    """The same for the training on one device."""
    weights: Weights | None = None
    weight_deviation: float | None = None
    """Largest absolute difference of any weight (trainable or not, on any replica) from the same training on one
    device; None if it was not compared or is not finite."""
    bit_differences: tuple[BitDifference, ...] = ()
    """What devices computed differently, if the case compares their outputs bit by bit."""
    programs: tuple[str, ...] = ()
    """The programs whose outputs were compared."""
    measures: Mapping[str, float | None] = field(default_factory=dict)
    """Measures that are specific to this scenario, by the names in its program's docstring; None is not finite."""
    job: Any = None
    """What a plugin's scenario reports beyond these fields. The plugin gives it a type when its checks read it."""
    build_s: float | None = None
    """Seconds to build the strategy, the model and the optimizer."""
    first_step_s: float | None = None
    """Seconds of the first step, mostly tracing."""
    step_s: float | None = None
    """Median seconds of a step after the first epoch."""
    peak_memory_bytes: int | None = None
    """Largest resident set of the case's process."""

    @property
    def on_gpus(self) -> int:
        """How many of its devices are GPUs: TensorFlow writes ``GPU:0``, Keras on JAX ``gpu:0``."""
        return sum("GPU:" in device.upper() for device in self.devices)


@dataclass(frozen=True, kw_only=True)
class SmokeRun(FactGroup):
    """The run of one scenario: the child that imported TensorFlow or JAX, and its cases."""

    group: ClassVar[str] = "smoke_run"

    scenario: str
    """The scenario's id."""
    version: int
    """The scenario's version; its measurements are comparable within a version."""
    devices_kind: Literal["gpu", "cpu"]
    """The requested devices: all visible GPUs, or logical CPU devices."""
    replicas_requested: int | None
    """Number of requested replicas; None for every GPU that TensorFlow lists."""
    tensorflow: str | None = None
    """``tensorflow.__version__``, as imported."""
    jax: str | None = None
    """``jax.__version__``, as imported, if the scenario uses JAX."""
    torch: str | None = None
    """``torch.__version__``, as imported, if the scenario uses torch."""
    keras: str | None = None
    """Name and version of the imported Keras (with TensorFlow, that of ``tf.keras``): ``keras 3.15.1``."""
    gpus_seen: int | None = None
    """Number of physical GPUs that TensorFlow lists; None on a CPU run, which hides them."""
    import_s: float | None = None
    """Seconds of ``import tensorflow``."""
    failure: Reason = None
    """Why cases did not run or are missing (for example TensorFlow could not be imported), if so."""
    faults: tuple[PackageFault, ...] = ()
    """The packages at fault, if an import failed and they were found."""
    stacks: Reason = None
    """Python stacks of the child, if it hung or crashed before any case."""
    stderr_tail: Reason = None
    """Last lines of the child's error output, if it failed."""
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
    """Scenario id to its run. A missing scenario was not requested."""
