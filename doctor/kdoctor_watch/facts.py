"""What ``kdoctor.Watch`` saw during a job's own training."""

from dataclasses import field
from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup
from kdoctor.facts.smoke import BitDifference
from kdoctor.records import record


@record
class ReplicaDifference:
    """A variable whose bits differ between two replicas."""

    variable: str
    replica: int
    """The replica that differs from most others; of two replicas, the second one."""
    device: str
    other: int
    """The replica that it was compared with."""
    step: int
    """The step after which it was found, counted from 0 over the whole run."""
    equal_at: int | None = None
    """The last step after which all replicas were equal; None if they never were."""
    values: int | None = None
    """The number of values that differ."""
    of: int | None = None
    """The number of values of the variable."""
    largest: float | None = None
    """The largest difference of two values; None if one of them is not finite."""


@record
class WatchedReplicas:
    """The comparisons of the replicas' variables."""

    replicas: int
    """Replicas in this process."""
    variables: int = 0
    """Variables that were compared."""
    checks: int = 0
    """How many times they were compared."""
    last_step: int | None = None
    """The step after which they were compared last."""
    every: int | None = None
    """Steps between two comparisons."""
    unavailable: str | None = None
    """Why they were not compared."""
    differences: tuple[ReplicaDifference, ...] = ()


@record
class NotFinite:
    """The first NaN or infinity of one quantity."""

    kind: Literal["log", "gradient", "variable"]
    """A value that the training reports (a loss or a metric), a gradient, or a variable of the model."""
    name: str
    step: int
    """The step after which it was found, counted from 0 over the whole run."""
    finite_at: int | None = None
    """The last step after which it was finite, as far as it was read; None if it never was."""
    replica: int | None = None


@record
class WatchedValues:
    """The search for NaNs and infinities."""

    logs: tuple[str, ...] = ()
    """Names of the reported values that were read after each step."""
    steps: int = 0
    """Steps whose reported values were read."""
    gradients: int = 0
    """Steps whose gradients were read."""
    variables: int = 0
    """Variables that were read, at each comparison of the replicas."""
    not_finite: tuple[NotFinite, ...] = ()


@record
class Stall:
    """A step that took far longer than the others."""

    step: int
    seconds: float
    ended: bool
    """Whether the step ended."""
    where: str = ""
    """The innermost Python line of the training's thread, if the step was seen while it ran."""


@record
class WatchedSteps:
    """The times of the training steps, without the first ones, validation and what happens between epochs."""

    steps: int
    """Steps that began."""
    timed: int = 0
    """Steps whose time was taken, at most 10,000 of them after the baseline."""
    baseline_s: float | None = None
    """Median seconds of a step at the beginning of the run: of at least 100 steps and 10 seconds."""
    recent_s: float | None = None
    """Median seconds of the newest steps after those of the baseline, as many as there."""
    slowest_s: float | None = None
    """The highest such median until now."""
    slowest_at: int | None = None
    """The step at which it was the newest."""
    stall_after_s: float | None = None
    """Seconds after which a step counts as a stall."""
    stalls: tuple[Stall, ...] = ()
    """The first ones."""


@record
class WatchedInput:
    """Whether the training waited for its data."""

    looks: int = 0
    """Steps before which the number of waiting batches was read."""
    empty: int = 0
    """How many times no batch was waiting."""
    waited_s: float | None = None
    """Seconds that a Python iterable took for its batches."""
    seconds: float | None = None
    """Seconds from its first batch to its last."""
    unavailable: str | None = None
    """Why it is not known."""


@record
class WatchedMemory:
    """The memory of the process, or of one GPU, over the run."""

    name: str
    """``process``, or TensorFlow's name of a device: ``GPU:0``."""
    every_s: float
    """The length of a period."""
    lows: tuple[int, ...]
    """The smallest number of bytes in use in each period."""


@record
class WatchedBits:
    """The canary: fixed programs between two steps, compared with their outputs before the first step."""

    every_s: float | None = None
    """Seconds between two rounds; None if no canary was asked for."""
    rounds: int = 0
    programs: tuple[str, ...] = ()
    devices: int = 0
    """Devices that ran them."""
    clean_step: int | None = None
    """The step after which all outputs were right last; -1 before the first step."""
    clean_at: float | None = None
    """When that round began, in seconds since 1970."""
    saves: str | None = None
    """The folder where the job saves, if it was named."""
    kept: str | None = None
    """The newest file there that is older than the last clean round, when a difference was found."""
    found_step: int | None = None
    """The step after which one was wrong first."""
    seconds: float = 0.0
    """Time of all rounds after the first."""
    slowest_s: float = 0.0
    """Time of the slowest of them."""
    unavailable: str | None = None
    """Why no further round was run."""
    differences: tuple[BitDifference, ...] = ()
    """``device`` and ``other`` are indices of ``Watched.devices``."""


@record
class Watched(FactGroup):
    """A job's own training, seen by ``kdoctor.Watch`` in the job's process."""

    group: ClassVar[str] = "watch"
    in_snapshots: ClassVar[bool] = False

    seconds: float
    """Time since the training began."""
    steps: WatchedSteps
    values: WatchedValues
    replicas: WatchedReplicas
    input: WatchedInput
    bits: WatchedBits = field(default_factory=WatchedBits)
    devices: tuple[str, ...] = ()
    """TensorFlow's names of the replicas' devices in this process."""
    bus_ids: tuple[str, ...] = ()
    """PCI addresses of the job's GPUs; empty if they are not known."""
    memory: tuple[WatchedMemory, ...] = ()
    log_unavailable: str | None = None
    """Why the kernel log was not read; None if its new lines are in the group ``kernel_log``."""
