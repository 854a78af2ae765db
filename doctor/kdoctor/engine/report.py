"""What a report says: results with their findings and waivers, the verdict, and what a renderer draws beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Literal

from kdoctor.model import Evidence, Finding, Severity, Status, Unjudged


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """A reviewed agreement to live with a failure for a while."""

    check: str
    """Id of the check."""
    subject: str
    """Shell-style pattern of the subjects."""
    reason: str
    owner: str
    expires: date
    """The last day on which it holds."""


@dataclass(frozen=True, kw_only=True)
class JudgedFinding:
    """A finding in a report, with the waiver that covers it, if one does."""

    finding: Finding
    waiver: Waiver | None = None
    expired: bool = False
    """Whether that waiver has expired, so that the finding counts again."""

    @property
    def counts(self) -> bool:
        """Whether it makes its check fail."""
        return self.waiver is None or self.expired


@dataclass(frozen=True, kw_only=True)
class Result:
    """What became of one check."""

    id: str
    family: str
    title: str
    status: Status
    severity: Severity
    reason: str | None = None
    """Why it was skipped or is unknown; on a failure, what else could not be judged."""
    findings: tuple[JudgedFinding, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    why: str = ""
    """Why the healthy condition matters."""
    blocked_by: str | None = None
    """The prerequisite that failed, where that is why it was skipped."""
    accepted: str | None = None
    """The reason for which an unknown is accepted, where the checklist or an option accepts it."""
    scenario: str | None = None
    """The scenario whose run it judges, if it judges one."""
    duration_s: float = 0.0


class Conclusion(str, Enum):
    """The answer to: may this job start here?"""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The conclusion, why, and the exit code that goes with it."""

    conclusion: Conclusion
    exit_code: int
    reason: str
    """One plain sentence."""
    warned: bool = False
    """Whether something of severity warning failed that did not count."""

    @property
    def service(self) -> Literal["OK", "WARNING", "CRITICAL", "UNKNOWN"]:
        """The state of a service, in the words of Nagios and its kin."""
        if self.conclusion is Conclusion.FAIL:
            return "CRITICAL"
        if self.conclusion is Conclusion.UNKNOWN:
            return "UNKNOWN"
        return "WARNING" if self.warned else "OK"


@dataclass(frozen=True, kw_only=True)
class ChecklistName:
    """Which checklist was applied."""

    name: str
    version: int


@dataclass(frozen=True, kw_only=True)
class DecidedStep:
    """One step of what was decided."""

    summary: str
    """One sentence."""
    commands: tuple[str, ...] = ()
    """Shell commands that can be pasted, in order."""


@dataclass(frozen=True, kw_only=True)
class DriftChange:
    """One recorded fact that is otherwise now."""

    fact: str
    """``packages.keras``, ``driver.version``, ..."""
    old: str | None
    """As recorded; None where it was not there."""
    new: str | None
    """As it stands; None where it is not there."""
    explains: tuple[str, ...] = ()
    """Failed checks that it plausibly explains, the likeliest first."""


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What changed since the last green run was recorded."""

    lock: str
    """The file of the record."""
    recorded: str
    """When, as the lock says."""
    changes: tuple[DriftChange, ...] = ()
    """Those that explain a failure first, the likeliest at the top."""
    unread: tuple[str, ...] = ()
    """Sections of the lock that could not be compared, each with its reason."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What the checklist's rollback section says about this run's failures."""

    action: Literal["roll back at once", "fix forward", "investigate"]
    checks: tuple[str, ...]
    """The failed checks that it concerns."""
    decides: str | None = None
    """Who decides."""
    within: str | None = None
    """By when, in words."""
    criteria: tuple[str, ...] = ()
    """The criterion that each of the checks met, in their order."""
    steps: tuple[DecidedStep, ...] = ()
    """What to do, in order."""


@dataclass(frozen=True, kw_only=True)
class ScenarioNote:
    """A scenario that was asked for, as the checklist describes it."""

    id: str
    kind: str
    expect: str
    """The expected outcome in plain language."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """What one case of a smoke training measured, for curves and trends."""

    scenario: str
    case: str
    outcome: str
    """``trained``, ``raised``, ``died``, ``timed-out`` or ``skipped``."""
    devices: Literal["gpu", "cpu"]
    replicas: int | None = None
    losses: tuple[float | None, ...] = ()
    """Loss of each epoch; None is not finite."""
    reference_losses: tuple[float | None, ...] = ()
    """The same on one device."""
    build_s: float | None = None
    first_step_s: float | None = None
    step_s: float | None = None
    """Median seconds of a step after the first epoch."""
    measures: Mapping[str, float | None] = field(default_factory=dict)
    """What only this scenario measures, by the names that it documents."""


@dataclass(frozen=True, kw_only=True)
class GpuNote:
    """One GPU of the drawing."""

    index: int
    name: str
    numa_node: int | None = None
    lost: bool = False


@dataclass(frozen=True, kw_only=True)
class GpuLinkNote:
    """What connects two GPUs of the drawing."""

    first: int
    second: int
    label: str
    """``NV12``, ``PIX``, ``SYS``, ..., as ``nvidia-smi topo -m`` has it; ``?`` if the driver does not say."""


@dataclass(frozen=True, kw_only=True)
class GpuWork:
    """What one GPU did while the smoke trainings ran, as it was sampled. None is what could not be read."""

    index: int
    name: str
    samples: int
    mean_utilization_percent: float | None = None
    peak_utilization_percent: float | None = None
    peak_memory_bytes: float | None = None
    peak_temperature_c: float | None = None
    peak_power_w: float | None = None
    power_limit_w: float | None = None
    held_back: Mapping[str, float] = field(default_factory=dict)
    """Why its clocks were not higher, in nvidia-smi's words, to the seconds; being idle is left out."""
    every_s: float = 0.0
    """Distance of the points of ``curves``."""
    curves: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """``utilization_percent``, ``memory_bytes``, ``temperature_c`` and ``power_w`` over time; None is a gap."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that a renderer needs, and nothing that it must decide."""

    verdict: Verdict
    target: str
    """One line: the interpreter and how it was chosen."""
    checklist: ChecklistName
    results: tuple[Result, ...]
    """In the checklist's order."""
    decisions: tuple[Decision, ...] = ()
    scenarios: tuple[ScenarioNote, ...] = ()
    unused_waivers: tuple[Waiver, ...] = ()
    """Waivers of checks that were evaluated which match no finding any more."""
    drift: Drift | None = None
    """What changed since the recorded run; None where there is no record."""
    trainings: tuple[Training, ...] = ()
    """What the smoke trainings measured."""
    gpus: tuple[GpuNote, ...] = ()
    """The machine's GPUs, in order of index."""
    gpu_links: tuple[GpuLinkNote, ...] = ()
    """Each pair of them, the smaller index first."""
    gpu_work: tuple[GpuWork, ...] = ()
    """What those did that were sampled while trainings ran on GPUs, in order of index."""
    last_green_at: str = ""
    """When the last run started that passed under this checklist, UTC, ISO 8601; empty where none is known."""
    duration_s: float = 0.0
    started_at: str = ""
    """UTC, ISO 8601."""
    interrupted: bool = False
    """Whether the run was ended by the user before all facts were collected."""
    fail_on: Severity = Severity.ERROR
    """Failures and unknowns below this severity did not count for the verdict."""

    def counts(self) -> dict[Status, int]:
        """Number of checks by status; every status is present."""
        return {status: sum(result.status is status for result in self.results) for status in Status}
