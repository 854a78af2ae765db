"""One examination: collects the facts of a machine and trains on it. It judges nothing."""

import datetime as dt
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kdoctor.facts import Environment, Facts, Gpus, GpuSampling, SmokeRun, SmokeRuns, TensorFlowBuild, Unavailable
from kdoctor.facts.visible import read_mask
from kdoctor.probes.collector import Collection
from kdoctor.probes.probe import Context, Probe
from kdoctor.probes.process.child import Children, ChildrenEnded
from kdoctor.probes.target import choose_target
from kdoctor.records import record
from kdoctor.run.interrupts import treat_ends_as_interrupts
from kdoctor.run.log import warn
from kdoctor.run.progress import bar, progress
from kdoctor.smoke.gpu_sampler import Sampler
from kdoctor.smoke.scenario import Framework, Scenario
from kdoctor.smoke.session import SmokeEvent, SmokeSession, SmokeSettings

Note = Callable[[str], None]
"""Takes a short text about the current step."""


@record
class RequestedTraining:
    """A scenario to train, and what to train it on."""

    scenario: Scenario
    replicas: int | None
    """Number of logical CPU devices; None for one replica on every visible GPU."""
    artifacts: Path | None = None
    """A folder for the files of the cases; None keeps nothing."""


@record
class Collected:
    """The facts of a run, and how they were collected."""

    facts: Facts
    target: str
    """The interpreter, for facts that do not name it."""
    started_at: dt.datetime
    duration_s: float
    interrupted: bool = False
    """Whether the user ended the run."""
    from_snapshot: bool = False
    """Whether they may be another machine's, so that this machine's history says nothing about them."""
    recorded_at: str = ""
    """When the snapshot was recorded; empty for facts of this run."""


class Examination:
    """The facts of one machine. After an interruption it has those that were collected until then."""

    def __init__(self, probes: Sequence[Probe], context: Context, *, deadline_s: float, note: Note) -> None:
        self._collection = Collection(probes)
        self._context = context
        self._deadline_s = deadline_s
        self._note = note
        self._sessions: list[SmokeSession] = []
        self._sampler: Sampler | None = None
        self._missing: dict[str, Unavailable] = {}
        self._cases = 0
        self._cases_ended = 0
        self._cut_short: str | None = None
        why = f"timed out after {deadline_s:g} s (see --timeout)"
        self._alarm = threading.Timer(min(deadline_s, threading.TIMEOUT_MAX), context.children.end_all, [why])
        self._alarm.daemon = True
        self._started_at, self._started = dt.datetime.now(dt.timezone.utc), time.monotonic()
        self.interrupted = False
        """Whether the user ended it early."""

    @property
    def collected(self) -> Collected:
        """The facts that are known so far, of a run that ends now."""
        return Collected(
            facts=self.facts,
            target=f"{self._context.python} (chosen by: {self._context.chosen_by})",
            started_at=self._started_at,
            duration_s=time.monotonic() - self._started,
            interrupted=self.interrupted,
        )

    @property
    def facts(self) -> Facts:
        """Every group that is known so far, or why it is unavailable."""
        runs: dict[str, SmokeRun | Unavailable] = dict(self._missing)
        for session in self._sessions:
            runs.update(session.known().runs)
        if self._cut_short:
            late = Unavailable(unavailable=self._cut_short)
            runs = {name: late if isinstance(run, Unavailable) else run for name, run in runs.items()}
        return {**self._collection.facts, SmokeRuns: SmokeRuns(runs=runs), GpuSampling: self._sampling()}

    def _sampling(self) -> GpuSampling | Unavailable:
        """What the GPUs did during trainings, or why that is unknown."""
        if self._sampler:
            return self._sampler.facts()
        if self._sessions:
            return GpuSampling(state="not-started", error="the trainings ran on logical CPU devices")
        lacking = next(iter(self._missing.values()), None)
        return lacking or GpuSampling(state="not-started", error="no training was run")

    def start(self) -> None:
        """Start every probe and the time limit of the run."""
        try:
            self._alarm.start()
        except RuntimeError as error:  # a limit of processes or memory; probes and cases have deadlines, too
            warn(f"kdoctor: --timeout has no effect: {error}")
        self._collection.start(self._context)

    def run(self, trainings: Sequence[RequestedTraining]) -> None:
        """Wait for the probes, then train.

        Trainings come second, so that their GPU memory is not reported as another process's. The deadline and Ctrl-C
        end every child process, and Ctrl-C sets :attr:`interrupted`. Facts that are missing then are unavailable.
        """
        self._missing = {
            item.scenario.id: Unavailable(unavailable="the run ended before this training") for item in trainings
        }
        try:
            self._note("reading the machine and the environment")
            self._collection.wait()
            self._train(trainings)
        except KeyboardInterrupt:
            self.interrupted = True
            self._cut_short = "the run was interrupted before there was a result"
            self._context.children.end_all()
        except ChildrenEnded as event:
            self._cut_short = str(event)
        finally:
            self._alarm.cancel()

    def _train(self, trainings: Sequence[RequestedTraining]) -> None:
        groups: dict[tuple[SmokeSettings, Framework], list[Scenario]] = {}
        for training in trainings:
            settings = self._settings(training)
            if isinstance(settings, Unavailable):
                self._missing[training.scenario.id] = settings
            else:
                groups.setdefault((settings, training.scenario.framework), []).append(training.scenario)
                self._cases += len(training.scenario.cases)
        if any(settings.devices_kind == "gpu" for settings, _ in groups):
            # Started before TensorFlow is imported, so that idle GPUs are sampled too.
            self._sampler = Sampler(self._context, deadline_s=self._deadline_s)
        try:
            for (settings, _), scenarios in groups.items():
                self._run(scenarios, settings)
        finally:
            if self._sampler:
                self._sampler.end()

    def _run(self, scenarios: Sequence[Scenario], settings: SmokeSettings) -> None:
        sampler = self._sampler if settings.devices_kind == "gpu" else None
        session = SmokeSession(scenarios, settings, self._context, self._show, sampler)
        self._sessions.append(session)
        session.run()

    def _settings(self, training: RequestedTraining) -> SmokeSettings | Unavailable:
        """What a training runs on, or why it cannot run."""
        build = self._collection.facts.get(TensorFlowBuild)
        needs_tensorflow = training.scenario.framework == "tensorflow"
        if needs_tensorflow and isinstance(build, TensorFlowBuild) and not build.installed:
            return Unavailable(unavailable="TensorFlow is not installed in the target environment")
        if training.replicas is not None:
            return SmokeSettings(devices_kind="cpu", replicas=training.replicas, artifacts=training.artifacts)
        visible = _visible_gpus(self._collection.facts)
        if isinstance(visible, Unavailable):
            return visible
        return SmokeSettings(devices_kind="gpu", replicas=visible, artifacts=training.artifacts)

    def _show(self, event: SmokeEvent) -> None:
        if event.kind == "importing":
            self._note("importing the framework")
        elif event.kind == "ended":
            self._cases_ended += 1
        elif event.kind in ("started", "phase"):
            self._note(
                f"{bar(self._cases_ended, self._cases)} {event.scenario}, {event.case}"
                + (f": {event.detail}" if event.detail else "")
            )


def _visible_gpus(facts: Facts) -> int | Unavailable:
    """Number of GPUs that TensorFlow should find: those of the driver that CUDA_VISIBLE_DEVICES does not hide."""
    gpus = facts.get(Gpus)
    if not isinstance(gpus, Gpus):
        why = gpus.unavailable if isinstance(gpus, Unavailable) else "the driver was not queried"
        return Unavailable(unavailable=f"the number of GPUs is unknown: {why}")
    if not gpus.devices:
        why = "the driver lists no GPU" if gpus.state == "ready" else f"NVML: {gpus.state}"
        return Unavailable(unavailable=f"there is no GPU ({why}); to train on the CPU, add --checklist cpu-smoke")
    environment = facts.get(Environment)
    if not isinstance(environment, Environment):
        return len(gpus.devices)
    mask = read_mask(environment, gpus.devices)
    if mask.unknown_reason:
        return Unavailable(unavailable=f"CUDA_VISIBLE_DEVICES={mask.value!r}: {mask.unknown_reason}")
    if not mask.visible:
        return Unavailable(unavailable=f"CUDA_VISIBLE_DEVICES={mask.value!r} hides every GPU")
    return len(mask.visible)


@contextmanager
def examination(
    probes: Sequence[Probe], python: str | None, timeout: float, first_folder: Path | None = None
) -> Iterator[Examination]:
    """Examine this machine: the probes are running on entry, and every child process is ended on exit."""
    treat_ends_as_interrupts()
    children = Children()
    target = choose_target(python, os.environ, children)
    context = Context(
        python=target.python,
        chosen_by=target.chosen_by,
        stand_in=target.stand_in,
        environ=dict(os.environ),
        children=children,
        first_folder=first_folder,
    )
    with progress() as shown:
        started = Examination(probes, context, deadline_s=timeout, note=shown.note)
        try:
            started.start()
            yield started
        finally:
            children.end_all()
