"""The content of a report: results with findings and waivers, the verdict, and what renderers show with them.

These dataclasses are the parts of the JSON report, too (:mod:`kdoctor.report.json`): their docstrings are the
descriptions in its JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import date
from enum import Enum
from typing import Annotated, Literal

from pydantic import Field

from kdoctor.facts import Node, is_not_recorded
from kdoctor.model import Evidence, Finding, Rollback, Severity, Status, Unjudged
from kdoctor.records import record

ALLOW_UNKNOWN = "--allow-unknown"
"""How an option accepts every unknown."""


@record
class Waiver:
    """A reviewed agreement to accept a failure until a date."""

    check: str
    """Id of the check."""
    subject: str
    """Shell-style pattern of the subjects."""
    reason: str
    owner: str
    expires: date
    """The last day on which it is valid."""


@record
class JudgedFinding:
    """A finding in a report, with the waiver that covers it, if any."""

    finding: Finding
    waiver: Waiver | None = None
    expired: bool = False
    """Whether the waiver has expired, so that the finding counts again."""
    hidden: bool = False
    """Whether it is about a GPU that CUDA_VISIBLE_DEVICES hides from the job."""

    @property
    def counts(self) -> bool:
        """Whether it makes its check fail."""
        return not self.hidden and (self.waiver is None or self.expired)


@record
class Result:
    """The result of one check."""

    id: str
    family: str
    title: str
    """The healthy condition, whatever the status."""
    status: Status
    severity: Severity
    reason: str | None = None
    """Why it was skipped or is unknown. On a failure: what else could not be judged."""
    findings: tuple[JudgedFinding, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    why: str = ""
    """Why the healthy condition matters; empty in JSON if the check was skipped."""
    sources: tuple[str, ...] = ()
    """Public pages with the criterion; none in JSON if the check was skipped."""
    blocked_by: str | None = None
    """The failed prerequisite, if the check was skipped because of it."""
    accepted: str | None = None
    """Why an unknown is accepted, if the checklist or an option accepts it."""
    scenario: str | None = None
    """The smoke scenario whose run it judges, if any."""
    left_out: bool = False
    """Whether an option of the run left it out."""
    duration_s: float = 0.0

    @property
    def mark(self) -> Mark:
        """The status, and of a failure the severity."""
        return Mark(self.severity.value if self.status is Status.FAIL else self.status.value)

    @property
    def is_unrecorded(self) -> bool:
        """Whether it is unknown only because a recording does not contain what it asks for."""
        reasons = [item.reason for item in self.unjudged] or [self.reason or ""]
        return self.status is Status.UNKNOWN and all(map(is_not_recorded, reasons))


class Mark(str, Enum):
    """What a report shows of a result or of a family: the status, and of a failure its severity."""

    PASS = "pass"
    WARNING = "warning"
    ERROR = "error"
    INFO = "info"
    SKIP = "skip"
    UNKNOWN = "unknown"


@record
class Problem:
    """A finding, or several of one check with the same headline."""

    check: str
    """Id of the check."""
    subjects: tuple[str, ...]
    headline: str
    """What is wrong, without the subjects."""
    findings: Annotated[tuple[Finding, ...], Field(exclude=True)] = ()
    """One for each subject."""


@record
class Cause:
    """One cause of failures, with its fix, and the results that follow from it."""

    checks: tuple[str, ...]
    """The failed checks that report it, the first one first."""
    severity: Severity
    """The most severe of what it explains."""
    problems: tuple[Problem, ...]
    fix: str
    """How to fix it, in one imperative sentence."""
    commands: tuple[str, ...]
    """Shell commands that fix it, each once."""
    look: tuple[str, ...] = ()
    """Shell commands that only read."""
    rollback: Rollback
    """How to undo the fix."""
    why: Annotated[str, Field(exclude=True)] = ""
    sources: Annotated[tuple[str, ...], Field(exclude=True)] = ()
    explains: tuple[str, ...] = ()
    """Further checks that failed because of it."""
    unjudged: tuple[str, ...] = ()
    """Checks that could not be judged because of it."""
    blocked: tuple[str, ...] = ()
    """Checks that were skipped because it failed."""
    after: tuple[str, ...] = ()
    """Failed checks that must be solved first: until then, this cause does not matter."""
    scope: Annotated[Literal["", "node", "job"], Field(exclude=True)] = ""
    """In the report of a fleet: whether it is a problem of the nodes or of the job."""


@record
class FixStep:
    """One step of the plan that gets the job started."""

    kind: Literal["workaround", "rollback", "fix"]
    """A workaround lets the job start without a fix. A rollback restores the last passing run."""
    summary: str
    """One imperative sentence."""
    commands: tuple[str, ...] = ()
    """Shell commands to paste, in order. A command is in one step only."""
    look: tuple[str, ...] = ()
    """Shell commands that only read."""
    solves: tuple[str, ...] = ()
    """The failed checks that it solves."""
    check: str = ""
    """The command that checks the result."""


@record
class Category:
    """A family of checks in one line."""

    family: str
    mark: Mark
    text: str
    """The values that were read, the worst problem, or why nothing was checked."""
    left_out: bool = False
    """Whether nothing of it was asked for, so that nothing is missing."""


class Conclusion(str, Enum):
    """The conclusion of a run: can the job start here?"""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


@record
class Verdict:
    """The conclusion with its reason and exit code."""

    conclusion: Conclusion
    exit_code: int
    reason: str
    """One sentence."""
    warned: bool = False
    """Whether a check failed, as a warning or with a waiver, without failing the run."""

    @property
    def service(self) -> Literal["OK", "WARNING", "CRITICAL", "UNKNOWN"]:
        """The service state as Nagios and compatible systems name it."""
        if self.conclusion is Conclusion.FAIL:
            return "CRITICAL"
        if self.conclusion is Conclusion.UNKNOWN:
            return "UNKNOWN"
        return "WARNING" if self.warned else "OK"


@record
class ChecklistName:
    """The checklist that was applied."""

    name: str
    version: int
    options: str = ""
    """The options that change what is asked, as they were given."""
    expectations: str = ""
    """Digest of what the checklist expects, in which order and comments do not matter. Empty in older reports."""


@record
class DecidedStep:
    """One step of a decision."""

    summary: str
    """One sentence."""
    commands: tuple[str, ...] = ()
    """Shell commands that can be pasted, in order."""


@record
class DriftChange:
    """One recorded fact that has changed."""

    fact: str
    """``packages.keras``, ``driver.version``, ..."""
    old: str | None
    """The recorded value; None if the fact was absent."""
    new: str | None
    """The current value; None if the fact is absent."""
    explains: tuple[str, ...] = ()
    """Failed checks that it may explain, likeliest first."""


@record
class Drift:
    """Changes since the last passing run was recorded."""

    lock: str
    """The file of the record."""
    recorded: str
    """When it was recorded, as the lock has it."""
    changes: tuple[DriftChange, ...] = ()
    """Those that may explain a failure first, likeliest at the top."""
    unread: tuple[str, ...] = ()
    """Sections of the lock that could not be compared, each with its reason."""


@record
class Decision:
    """What the checklist's failure policy says about failures of this run."""

    action: Literal["roll back at once", "fix forward", "investigate"]
    checks: tuple[str, ...]
    """The failed checks that it covers."""
    decides: str | None = None
    """Who decides."""
    within: str | None = None
    """The time limit, such as ``30 minutes``."""
    criteria: tuple[str, ...] = ()
    """The criterion that each of the checks matched, in the order of ``checks``."""
    steps: tuple[DecidedStep, ...] = ()
    """What to do, in order."""


@record
class ScenarioNote:
    """A requested smoke training, as the checklist describes it."""

    id: str
    kind: str
    expect: str
    """The expected outcome."""


@record
class Training:
    """Measurements of one case of a smoke training."""

    scenario: str
    case: str
    outcome: str
    """trained, raised, died, timed-out or skipped."""
    devices: Literal["gpu", "cpu"]
    replicas: int | None = None
    losses: tuple[float | None, ...] = ()
    """Loss of each epoch; null if not finite."""
    reference_losses: tuple[float | None, ...] = ()
    """The same on one device."""
    build_s: float | None = None
    first_step_s: float | None = None
    step_s: float | None = None
    """Median seconds of a step after the first epoch."""
    measures: Mapping[str, float | None] = field(default_factory=dict)
    """What only this scenario measures, by the names that it documents."""
    phase: str | None = None
    """The phase in which it ended, if it did not finish: ``strategy``, ``first step``, ``step 7``, ..."""
    stacks: str | None = None
    """Python stacks of all threads, if it crashed or passed its time limit."""


@record
class GpuNote:
    """One GPU of the topology drawing."""

    index: int
    name: str
    numa_node: int | None = None
    lost: bool = False


@record
class GpuLinkNote:
    """The connection of two GPUs of the drawing."""

    first: int
    second: int
    label: str
    """``NV12``, ``PIX``, ``SYS``, ..., as ``nvidia-smi topo -m`` has it; ``?`` if the driver does not report it."""


@record
class GpuWork:
    """Samples of one GPU during the smoke trainings. None is what could not be read."""

    index: int
    """As nvidia-smi counts."""
    name: str
    samples: int
    mean_utilization_percent: float | None = None
    peak_utilization_percent: float | None = None
    peak_memory_bytes: float | None = None
    peak_temperature_c: float | None = None
    peak_power_w: float | None = None
    power_limit_w: float | None = None
    held_back: Mapping[str, float] = field(default_factory=dict)
    """Seconds for which each reason that nvidia-smi names held the clocks back; idle is left out."""
    every_s: Annotated[float, Field(exclude=True)] = 0.0
    """Seconds between the points of ``curves``."""
    curves: Annotated[Mapping[str, tuple[float | None, ...]], Field(exclude=True)] = field(default_factory=dict)
    """``utilization_percent``, ``memory_bytes``, ``temperature_c`` and ``power_w`` over time; None is a gap."""


@record
class Report:
    """Everything that a renderer needs. Renderers decide nothing."""

    verdict: Verdict
    target: str
    """One line: the interpreter and how it was chosen."""
    checklist: ChecklistName
    results: tuple[Result, ...]
    """In the checklist's order."""
    categories: tuple[Category, ...] = ()
    """Each family in one line."""
    causes: tuple[Cause, ...] = ()
    """What is wrong, in the order in which to solve it."""
    plan: tuple[FixStep, ...] = ()
    """How to get the job started, in order."""
    command: str = ""
    """The command that runs the same checks again; empty if no command did."""
    recorded: bool = False
    """Whether the facts are a recording, which no fix changes."""
    details: str = ""
    """The command that shows every check, if that is not ``command`` with ``-v``."""
    decisions: tuple[Decision, ...] = ()
    scenarios: tuple[ScenarioNote, ...] = ()
    unused_waivers: tuple[Waiver, ...] = ()
    """Waivers of evaluated checks that match no finding."""
    drift: Drift | None = None
    """Changes since the recorded run; None without a record."""
    trainings: tuple[Training, ...] = ()
    gpus: tuple[GpuNote, ...] = ()
    """The machine's GPUs, in order of index."""
    gpu_links: tuple[GpuLinkNote, ...] = ()
    """Each pair of them, the smaller index first."""
    gpu_work: tuple[GpuWork, ...] = ()
    """The GPUs that were sampled while trainings ran on them, in order of index."""
    last_green_at: str = ""
    """When the last passing run under this checklist started, UTC, ISO 8601; empty if there is none."""
    duration_s: float = 0.0
    started_at: str = ""
    """UTC, ISO 8601."""
    interrupted: bool = False
    """Whether the user ended the run before all facts were collected."""
    node: Node | None = None
    """Which node of a job this is; None if that was not recorded."""
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What the nodes of a job should share, by section: versions, GPUs, variables, ..."""
    fail_on: Severity = Severity.ERROR
    """Failures and unknowns below this severity did not count for the verdict."""

    def counts(self) -> dict[Status, int]:
        """Number of checks by status; every status is present."""
        return {status: sum(result.status is status for result in self.results) for status in Status}

    def marks(self) -> dict[Mark, int]:
        """Number of checks by mark, which tells errors from warnings; every mark is present."""
        return {mark: sum(result.mark is mark for result in self.results) for mark in Mark}
