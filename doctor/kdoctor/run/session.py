"""One examination: collect the facts of a machine and train on it. It judges nothing and prints nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdoctor.facts import Environment, FactGroup, Gpus, GpuSampling, SmokeRun, SmokeRuns, TensorFlowBuild, Unavailable
from kdoctor.facts.visible import read_mask
from kdoctor.probes.collector import Collection
from kdoctor.probes.probe import Context, Probe
from kdoctor.probes.process.child import ChildrenEnded
from kdoctor.run.progress import bar
from kdoctor.smoke.gpu_sampler import Sampler
from kdoctor.smoke.scenario import Framework, Scenario
from kdoctor.smoke.session import SmokeEvent, SmokeSession, SmokeSettings

Facts = Mapping[type[FactGroup], "FactGroup | Unavailable"]
Note = Callable[[str], None]
"""Takes a short text that says what is being done now."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """A scenario that is asked for, and what it is to run on."""

    scenario: Scenario
    replicas: int | None
    """Number of logical CPU devices; None for one replica on every visible GPU."""
    artifacts: Path | None = None
    """A folder that keeps what the cases wrote; None keeps nothing."""


class Examination:
    """What is known of one machine. An interruption leaves in it what was known until then."""

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
        self._alarm = threading.Timer(deadline_s, context.children.end_all)
        self._alarm.daemon = True
        self.interrupted = False
        """Whether the user ended it early."""

    @property
    def facts(self) -> Facts:
        """What is known by now: each group, or why it is not known."""
        runs: dict[str, SmokeRun | Unavailable] = dict(self._missing)
        for session in self._sessions:
            runs.update(session.known().runs)
        if self._cut_short:
            late = Unavailable(unavailable=self._cut_short)
            runs = {name: late if isinstance(run, Unavailable) else run for name, run in runs.items()}
        return {**self._collection.facts, SmokeRuns: SmokeRuns(runs=runs), GpuSampling: self._sampling()}

    def _sampling(self) -> GpuSampling | Unavailable:
        """What the GPUs did while trainings ran on them, or why nothing can be said of that."""
        if self._sampler:
            return self._sampler.facts()
        if self._sessions:
            return GpuSampling(state="not-started", error="the trainings ran on logical CPU devices")
        lacking = next(iter(self._missing.values()), None)
        return lacking or GpuSampling(state="not-started", error="no training was run")

    def start(self) -> None:
        """Set every probe to work, and let the time for the whole run begin."""
        self._alarm.start()
        self._collection.start(self._context)

    def run(self, trainings: Sequence[Training]) -> None:
        """Wait for the probes that :meth:`start` set to work, then train.

        The trainings come second, so that the memory that they take is not mistaken for somebody else's.
        Ctrl-C ends every child and sets :attr:`interrupted`. When the deadline for the whole passes, every
        child is ended too, and what was not known by then is unavailable.
        """
        self._missing = {item.scenario.id: Unavailable(unavailable="the run ended before it") for item in trainings}
        try:
            self._note("reading the machine and the environment")
            self._collection.wait()
            self._train(trainings)
        except KeyboardInterrupt:
            self.interrupted = True
            self._cut_short = "the run was interrupted before it had a result"
            self._context.children.end_all()
        except ChildrenEnded:
            self._cut_short = f"the {self._deadline_s:g} s for the whole run were over (--timeout)"
        finally:
            self._alarm.cancel()

    def _train(self, trainings: Sequence[Training]) -> None:
        groups: dict[tuple[SmokeSettings, Framework], list[Scenario]] = {}
        for training in trainings:
            settings = self._settings(training)
            if isinstance(settings, Unavailable):
                self._missing[training.scenario.id] = settings
            else:
                groups.setdefault((settings, training.scenario.framework), []).append(training.scenario)
                self._cases += len(training.scenario.cases)
        if any(settings.devices_kind == "gpu" for settings, _ in groups):
            # Begun before TensorFlow is imported, so that the GPUs are seen idle, too.
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

    def _settings(self, training: Training) -> SmokeSettings | Unavailable:
        """What a training runs on, or why it cannot be run."""
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
            self._note("importing what the trainings compute with")
        elif event.kind == "ended":
            self._cases_ended += 1
        elif event.kind in ("started", "phase"):
            self._note(
                f"{bar(self._cases_ended, self._cases)} {event.scenario}, {event.case}"
                + (f": {event.detail}" if event.detail else "")
            )


def _visible_gpus(facts: Facts) -> int | Unavailable:
    """How many GPUs TensorFlow should find: those that the driver lists and CUDA_VISIBLE_DEVICES leaves."""
    gpus = facts.get(Gpus)
    if not isinstance(gpus, Gpus):
        why = gpus.unavailable if isinstance(gpus, Unavailable) else "the driver was not asked"
        return Unavailable(unavailable=f"it is not known how many GPUs to train on: {why}")
    if not gpus.devices:
        why = "the driver lists none" if gpus.state == "ready" else f"NVML: {gpus.state}"
        return Unavailable(unavailable=f"there is no GPU to train on ({why})")
    environment = facts.get(Environment)
    if not isinstance(environment, Environment):
        return len(gpus.devices)
    mask = read_mask(environment, gpus.devices)
    if mask.untold:
        return Unavailable(unavailable=f"CUDA_VISIBLE_DEVICES={mask.value!r}: {mask.untold}")
    if not mask.visible:
        return Unavailable(unavailable=f"CUDA_VISIBLE_DEVICES={mask.value!r} hides every GPU")
    return len(mask.visible)
