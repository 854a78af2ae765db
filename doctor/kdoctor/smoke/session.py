"""Runs scenarios in the target interpreter and collects their facts."""

import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kdoctor.facts import PackageFault, SmokeCase, SmokeRun, SmokeRuns, Unavailable
from kdoctor.facts.plausible import plausible
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import ChildEnd, ChildrenEnded
from kdoctor.probes.process.launch import program_argv
from kdoctor.probes.process.records import RecordError, build
from kdoctor.probes.process.run_folder import run_folder
from kdoctor.records import record
from kdoctor.smoke.gpu_sampler import Sampler
from kdoctor.smoke.scenario import Framework, Scenario
from kdoctor.text.lists import some

EventKind = Literal["importing", "imported", "started", "phase", "ended"]

PRELOAD: Mapping[Framework, tuple[str, ...]] = {
    "tensorflow": ("tensorflow", "numpy.random"),
    "jax": ("jax", "keras", "numpy.random"),
    "torch": ("torch", "keras", "numpy.random"),
}
"""Modules that are imported before the cases of a framework."""

_TAIL_LINES = 40
_TEMPORARY = "tmp"
"""Folder for temporary files of the trainings, inside the folder of the run."""

_SPARE_S = 30.0
"""Seconds that the runner gets beyond all its deadlines before kdoctor ends it."""


_START_S = 5.0
"""Seconds that the interpreter gets beyond the deadline of the import, which the runner keeps itself."""


@record
class SmokeSettings:
    """Devices and processes of the trainings."""

    devices_kind: Literal["gpu", "cpu"]
    replicas: int | None = None
    """Number of replicas; None for every GPU that TensorFlow lists, or for one CPU."""
    parallel: int | None = None
    """Cases that run at once; None for one on GPUs, and one per usable CPU, at most four, on CPUs."""
    isolation: Literal["auto", "fork", "fresh"] = "auto"
    """How a case gets its process: forked after the import, or in a fresh interpreter."""
    import_deadline_s: float = 180.0
    """Seconds for the import of the framework, which takes minutes on a cold network file system."""
    preload: tuple[str, ...] | None = None
    """Modules to import before the cases; None for those of the framework."""
    artifacts: Path | None = None
    """A folder for the events, error output and stacks of every case; None keeps nothing."""


@record
class SmokeEvent:
    """An event of a smoke run, for progress."""

    kind: EventKind
    scenario: str | None = None
    case: str | None = None
    detail: str | None = None
    """The phase entered, the outcome, or the imported versions."""


OnEvent = Callable[[SmokeEvent], None]


@record
class _Imported:
    """The versions that the runner imported."""

    tensorflow: str | None = None
    jax: str | None = None
    torch: str | None = None
    keras: str | None = None
    import_s: float | None = None


@record
class _CaseRecord:
    """An event of a case."""

    event: Literal["started", "phase", "ended"]
    scenario: str
    case: str
    phase: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class _Progress:
    """The state of one scenario."""

    scenario: Scenario
    cases: dict[str, SmokeCase] = field(default_factory=dict)
    gpus_seen: int | None = None
    started: float | None = None
    ended: float | None = None


class SmokeSession:
    """One run of scenarios of one framework. :meth:`known` can be called at any time, from any thread."""

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        settings: SmokeSettings,
        context: Context,
        on_event: OnEvent | None = None,
        sampler: Sampler | None = None,
    ) -> None:
        self._settings = settings
        self._context = context
        self._on_event = on_event
        self._lock = threading.Lock()
        self._scenarios = tuple(scenarios)
        self._progress = {scenario.id: _Progress(scenario) for scenario in scenarios}
        frameworks: set[Framework] = {scenario.framework for scenario in scenarios} or {"tensorflow"}
        if len(frameworks) > 1:
            raise ValueError("all scenarios of a session must have the same framework")
        (self._framework,) = frameworks
        self._preload = PRELOAD[self._framework] if settings.preload is None else settings.preload
        self._imported: _Imported | None = None
        self._invalid: str | None = None
        """Why the first invalid record was not taken."""
        self._failure: str | None = None
        self._signal: str | None = None
        self._running: dict[tuple[str, str], str] = {}
        """The cases that have begun and not ended, with their last phase."""
        self._begun: dict[tuple[str, str], Mapping[str, Any]] = {}
        """What they have reported."""
        self._faults: tuple[PackageFault, ...] = ()
        self._stacks: str | None = None
        self._stderr_tail: str | None = None
        self._sampler = sampler

    def run(self) -> SmokeRuns:
        """Run every case of every scenario.

        Raises:
            ChildrenEnded: the run was interrupted; :meth:`known` has what came before.
        """
        if not self._progress:
            return self.known()
        self._emit(SmokeEvent(kind="importing"))
        # A process that has not ended yet may still write here, so errors are ignored.
        with run_folder("smoke") as folder:
            try:
                end = self._context.children.run(
                    program_argv(self._context.python, "runner.main", self._runner_settings(folder)),
                    env=_without_traces(self._context.environ, folder),
                    deadline_s=self._deadline_s(),
                    on_record=self._take,
                    keep_records=False,
                    first_record_s=self._settings.import_deadline_s + _START_S,
                )
            except (ChildrenEnded, KeyboardInterrupt) as event:
                self._keep_begun(str(event) or "the run was interrupted")
                raise
            except (OSError, RuntimeError) as error:
                self._failure = f"{self._context.python} could not be started: {error}"
            else:
                stacks = Path(folder, f"runner-{self._framework}.stacks")
                self._conclude(end, stacks.read_text(encoding="utf-8", errors="replace") if stacks.exists() else "")
            finally:
                if self._settings.artifacts:
                    without = shutil.ignore_patterns(_TEMPORARY)
                    shutil.copytree(folder, self._settings.artifacts, ignore=without, dirs_exist_ok=True)
        return self.known()

    def _keep_begun(self, why: str) -> None:
        """Keep what the job of the user has shown before the run ended. Other cases are short, and mean little then."""
        with self._lock:
            for (name, case), phase in self._running.items():
                progress, reason = self._progress[name], f"{why}, in phase {phase or 'import'}"
                if progress.scenario.needs_options:
                    facts = {**self._begun.get((name, case), {}), "outcome": "skipped", "skip_reason": reason}
                    progress.cases[case] = _case_of(case, facts)

    def known(self) -> SmokeRuns:
        """The runs so far. A scenario without any result is ``Unavailable``."""
        with self._lock:
            return SmokeRuns(runs={name: self._run_of(progress) for name, progress in self._progress.items()})

    def _run_of(self, progress: _Progress) -> SmokeRun | Unavailable:
        scenario = progress.scenario
        cases = tuple(progress.cases[name] for name in scenario.cases if name in progress.cases)
        is_complete = len(cases) == len(scenario.cases)
        if not cases and self._failure is None:
            return Unavailable(unavailable="the run ended before this scenario had a result")
        imported = self._imported or _Imported()
        began, ended = progress.started, progress.ended
        return SmokeRun(
            scenario=scenario.id,
            version=scenario.version,
            devices_kind=self._settings.devices_kind,
            replicas_requested=self._settings.replicas,
            tensorflow=imported.tensorflow,
            jax=imported.jax,
            torch=imported.torch,
            keras=imported.keras,
            gpus_seen=progress.gpus_seen,
            import_s=imported.import_s,
            failure=None if is_complete else self._failure,
            signal=None if is_complete else self._signal,
            faults=() if is_complete else self._faults,
            stacks=None if is_complete else self._stacks,
            stderr_tail=None if is_complete else self._stderr_tail,
            cases=cases,
            seconds=ended - began if began is not None and ended is not None else None,
        )

    def _runner_settings(self, folder: str) -> dict[str, object]:
        settings = self._settings
        return {
            "folder": folder,
            "devices_kind": settings.devices_kind,
            "replicas": settings.replicas,
            "parallel": settings.parallel,
            "isolation": settings.isolation,
            "import_deadline_s": settings.import_deadline_s,
            "framework": self._framework,
            "preload": list(self._preload),
            "respawn": program_argv(self._context.python, "runner.main", {})[:-1],
            "cases": [
                {
                    "scenario": scenario.id,
                    "program": str(scenario.program),
                    "case": case,
                    "deadline_s": scenario.deadline_s,
                    "settings": dict(scenario.settings),
                    "stem": re.sub(r"[^A-Za-z0-9._-]", "_", f"{scenario.id}.{case}"),
                }
                for scenario in self._scenarios
                for case in scenario.cases
            ],
        }

    def _deadline_s(self) -> float:
        """The worst case: all cases hang in sequence, each in a fresh interpreter."""
        import_s = self._settings.import_deadline_s
        cases_s = sum(len(scenario.cases) * (scenario.deadline_s + import_s) for scenario in self._scenarios)
        return import_s + cases_s + _SPARE_S

    def _take(self, record: object) -> None:
        """Take one record of the runner (see ``kdoctor_target.runner.main``). Others may come from any module."""
        if not isinstance(record, dict):
            return
        kind = record.get("event")
        try:
            if kind == "imported":
                imported = build(_Imported, record)
                with self._lock:
                    self._imported = imported
                self._emit(SmokeEvent(kind="imported", detail=_versions(imported)))
            elif kind == "failed":
                faults = tuple(build(PackageFault, fault) for fault in record.get("faults", ()))
                with self._lock:
                    self._failure = f"{record.get('error_type')}: {record.get('error_message')}"
                    self._faults = faults
            else:
                self._take_case(build(_CaseRecord, record))
        except (RecordError, TypeError) as error:
            with self._lock:
                self._invalid = self._invalid or str(error)

    def _take_case(self, record: _CaseRecord) -> None:
        progress = self._progress.get(record.scenario)
        if progress is None or record.case not in progress.scenario.cases:
            return
        now = time.monotonic()
        kind, case, detail = record.event, record.case, record.phase
        self._notify_sampler(kind, progress.scenario.id, case, detail)
        with self._lock:
            progress.started = now if progress.started is None else progress.started
            place = record.scenario, case
            self._running[place] = detail or self._running.get(place, "")
            self._begun[place] = record.facts
            if kind == "ended":
                del self._running[place]
                progress.ended = now
                facts = dict(record.facts)
                seen = facts.pop("gpus_seen", None)
                progress.gpus_seen = seen if isinstance(seen, int) else progress.gpus_seen
                progress.cases[case] = _case_of(case, facts)
                detail = progress.cases[case].outcome
        self._emit(SmokeEvent(kind=kind, scenario=progress.scenario.id, case=case, detail=detail))

    def _notify_sampler(self, kind: str, scenario: str, case: str, phase: str | None) -> None:
        """Attribute the samples to the running case, if cases run one at a time."""
        if self._sampler is None:
            return
        if kind == "started":
            self._sampler.enter(scenario, case, alone=self._settings.parallel in (None, 1))
        elif kind == "phase" and phase:
            self._sampler.phase(phase)
        elif kind == "ended":
            self._sampler.leave()

    def _conclude(self, end: ChildEnd, stacks: str) -> None:
        """Record why cases are missing, if any are."""
        with self._lock:
            if self._failure is None:
                self._failure = self._describe(end)
                is_late = end.timed_out or (not self._imported and end.seconds >= self._settings.import_deadline_s)
                self._signal = None if self._invalid or is_late else end.signal
            self._stacks = stacks or None
            self._stderr_tail = "\n".join(end.stderr.splitlines()[-_TAIL_LINES:]) or None

    def _describe(self, end: ChildEnd) -> str:
        what = " and ".join(self._preload) or "the runner"
        if self._invalid:
            return f"the process that runs the trainings sent an invalid record: {self._invalid}"
        if self._imported:
            during = some([" ".join(filter(None, (*place, phase))) for place, phase in self._running.items()], 2)
            return f"the process that runs the trainings {end.describe(during)}"
        if end.timed_out or end.seconds >= self._settings.import_deadline_s:
            return f"importing {what} did not finish within {self._settings.import_deadline_s:g} s"
        return f"the process that imports {what} {end.describe()}"

    def _emit(self, event: SmokeEvent) -> None:
        if self._on_event:
            self._on_event(event)


def _without_traces(environ: Mapping[str, str], folder: str) -> Mapping[str, str]:
    """The user's environment, with side effects redirected to the folder of the run.

    These are Keras' ``keras.json``, if the user has none yet, and temporary files: AutoGraph writes its code to one
    file per function and removes it when Python exits, which the process of a case never does.
    """
    temporary = Path(folder, _TEMPORARY)
    temporary.mkdir(exist_ok=True)
    environ = {**environ, "TMPDIR": str(temporary)}
    home = environ.get("HOME")
    if "KERAS_HOME" in environ or home is None or Path(home, ".keras", "keras.json").exists():
        return environ
    return {**environ, "KERAS_HOME": str(Path(folder, "keras"))}


def _case_of(name: str, facts: Mapping[str, Any]) -> SmokeCase:
    """The facts of a case. Unknown facts, from a plugin's program, are ignored."""
    try:
        return plausible(build(SmokeCase, {**facts, "name": name}))
    except RecordError as error:
        return SmokeCase(
            name=name,
            outcome="raised",
            error_type="RecordError",
            error_message=f"the scenario's program sent an invalid fact: {error}",
        )


def _versions(imported: _Imported) -> str | None:
    found = {"tensorflow": imported.tensorflow, "jax": imported.jax, "torch": imported.torch}
    named = [f"{name} {version}" for name, version in found.items() if version]
    return ", ".join([*named, imported.keras]) if named and imported.keras else None
