"""The results of the smoke trainings."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

from packaging.version import Version

from kdoctor.facts.base import FactGroup, Facts, Unavailable
from kdoctor.facts.bounds import POSITIVE, SIGNED, AtMost, Identity, OfFailure, Reason, marked
from kdoctor.facts.gpus import Gpus
from kdoctor.facts.packages import TENSORFLOWS, PackageFault, Packages, canonical_name
from kdoctor.facts.tensorflow import KerasChoice, TensorFlowBuild
from kdoctor.records import record

CaseOutcome = Literal["trained", "raised", "died", "timed-out", "skipped"]
"""How a case ended: it finished; it raised a Python exception; its process died of a signal or exited without a
result; it passed its deadline and was ended; it does not apply to this environment."""


@record
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
    error_type: Annotated[Reason, OfFailure()] = None
    """Class of the exception, for ``raised``."""
    error_message: Annotated[Reason, OfFailure()] = None
    """The exception's first lines."""
    exit_code: Annotated[int | None, SIGNED, OfFailure()] = None
    """Exit status of the process; None where a signal ended it."""
    signal: Annotated[str | None, OfFailure()] = None
    """Name of the signal that ended it, for example ``SIGSEGV``."""
    seconds: float | None = None
    """Its wall time."""


@record
class SmokeWorker(_Process):
    """One process of a case that trains in several."""

    name: Annotated[str, Identity()]
    """Its task, as in TF_CONFIG: ``worker 0``, ``ps 0``."""
    outcome: CaseOutcome
    """How it ended; ``timed-out`` if it waited for others, or they for it, until it was ended."""
    losses: tuple[float | None, ...] = ()
    """Loss of each epoch in this worker."""
    weight_deviation: float | None = None
    """Largest absolute difference of any of its weights from the same training on one device."""


@record
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


_OF_TENSORFLOW = 3
"""Numbers of a release. Builds of vendors have one more."""
_BEFORE_TRAINING = ("import", "strategy", "reference", "build", "data", "trace")
"""The phases before the first step."""

PairOutcome = Literal["trained", "raised", "died", "timed-out", "not-tested"]
"""How a pair of replicas ended: like a case, or it was not reached."""


@record
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


@record
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


@record
class SmokeCase(_Process):
    """One training, in a separate process."""

    name: Annotated[str, Identity()]
    """The case's name within its scenario, for example ``guarded``."""
    outcome: CaseOutcome
    skip_reason: Annotated[Reason, OfFailure()] = None
    """Why it does not apply to this environment, for ``skipped``."""
    stacks: Annotated[Reason, OfFailure()] = None
    """Python stacks of all threads, if it crashed or passed its deadline."""
    stderr_tail: Annotated[Reason, OfFailure()] = None
    """Last lines of its error output, if it did not finish."""
    log_lines: Annotated[tuple[str, ...], OfFailure()] = ()
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
    final_batch: Annotated[int | None, AtMost("global_batch")] = None
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

    def contradictions(self, known: frozenset[str | None]) -> Iterator[str]:
        """Why it cannot have trained as it says, on GPUs of these addresses."""
        if self.weights and self.weights.mirrored + self.weights.sharded > self.weights.variables:
            yield f"has more than its variables ({self.weights.variables}) on every replica"
        if all(worker.outcome == "trained" for worker in self.workers):  # others are ended on purpose
            failed = (name for name in marked(SmokeCase, OfFailure) if getattr(self, name))
            yield from (f"trained, and has {name.replace('_', ' ')} {getattr(self, name)!r:.60}" for name in failed)
            if 0 in (self.examples, self.global_batch, self.steps):
                yield "trained on no examples"
            if self.phase in _BEFORE_TRAINING and self.losses:
                yield f"trained, and its last phase is {self.phase}"
        if not self.workers:  # each has its devices
            yield from self._misplaced(known)

    def _misplaced(self, known: frozenset[str | None]) -> Iterator[str]:
        processes = self.measures.get("workers") or 1  # on other nodes, each with its devices
        for names in (self.devices, self.bus_ids):
            if names and self.replicas and len(names) * processes < self.replicas:
                yield "has more replicas than devices"
            yield from (f"has two replicas on {name}" for name in names if name and names.count(name) > 1)
        foreign = (name for name in self.bus_ids if name and known and name not in known)
        yield from (f"trained on {name}, which is not a GPU of this machine" for name in foreign)


@record
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
    signal: str | None = None
    """Name of the signal that ended the child, if that is the reason."""
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

    def contradiction(self, facts: Facts) -> str:
        """It trained with what is installed, on this machine, and each case ended once."""
        return next(self._contradictions(facts), "")

    def _contradictions(self, facts: Facts) -> Iterator[str]:
        for name, imported, installed in self._versions(facts):
            if installed and not any(_is_of(imported, version) for version in installed):
                yield f"it trained with {name} {imported}, and {installed[0]} is installed"
        gpus = facts.get(Gpus)
        addresses = {gpu.bus_id for gpu in gpus.devices} if isinstance(gpus, Gpus) else set()
        known = frozenset(addresses) if None not in addresses else frozenset()
        for case in self.cases:
            if case.outcome == "trained":
                yield from (f"{case.name} {why}" for why in case.contradictions(known))
                if case.seconds is not None and self.seconds is not None and case.seconds > self.seconds + 1:
                    yield f"{case.name} took longer than the run"

    def _versions(self, facts: Facts) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """What was imported: its name, its version, and the versions of it that are installed, as each group says."""
        build, keras, packages = facts.get(TensorFlowBuild), facts.get(KerasChoice), facts.get(Packages)
        name, _, version = (self.keras or "").partition(" ")
        listed = packages.installed if isinstance(packages, Packages) else ()
        for shown, imported, names in (
            ("TensorFlow", self.tensorflow, TENSORFLOWS),
            (name, version, {canonical_name(name)}),
            ("JAX", self.jax, {"jax"}),
            ("torch", self.torch, {"torch"}),
        ):
            if imported:
                yield (
                    shown,
                    imported,
                    tuple(package.version for package in listed if package.name in names and package.version),
                )
        if self.tensorflow and isinstance(build, TensorFlowBuild) and build.version:
            yield "TensorFlow", self.tensorflow, (build.version,)
        if version and isinstance(keras, KerasChoice) and keras.version and canonical_name(name) == keras.package:
            yield name, version, (keras.version,)


def _is_of(imported: str, installed: str) -> bool:
    """Whether a version may be that of a distribution: builds of vendors have further numbers."""
    try:
        one, other = Version(imported), Version(installed)
    except ValueError:  # not a version, or one of thousands of digits
        return True
    return one.public == other.public or (
        len(other.release) > _OF_TENSORFLOW and other.release[:_OF_TENSORFLOW] == one.release
    )


@record
class SmokeRuns(FactGroup):
    """All scenarios that were run."""

    group: ClassVar[str] = "smoke"

    runs: Mapping[str, SmokeRun | Unavailable] = field(default_factory=dict)
    """Scenario id to its run. A missing scenario was not requested."""
