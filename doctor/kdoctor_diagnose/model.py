"""The diagnosis: what every format shows of it."""

from typing import Literal

from pydantic import Field

from kdoctor.documents import Document, Part
from kdoctor.failures.known import Certainty, Kind

Conclusion = Literal["cause", "consequence", "not-recognised", "not-read", "no-end", "no-failure"]
"""A known failure is the cause; only consequences of a failure elsewhere were found; the log has a failure that is not
known; what was read of the log has none, but not all was read; the log has none, and does not show that the job did its
work; the log has none."""
Owner = Literal["program", "data", "machine", "environment", "undecided"]
"""Whose error it is, as far as its message says."""
Activity = Literal["collective", "data", "saving", "compiling", "start", "step", "unknown"]
"""What a process did when its stacks were dumped."""


class Place(Part):
    """Where a message is."""

    log: str
    line: int
    rank: str | None = None
    """The process, as its launcher or NCCL names it."""
    text: str


class Step(Part):
    """One thing to do."""

    do: str
    commands: list[str] = Field(default_factory=list)


class Follower(Part):
    """A failure that another one explains."""

    id: str
    symptom: str
    count: int
    first: Place


class Cause(Part):
    """A known failure in the logs."""

    id: str
    kind: Kind
    symptom: str
    cause: str
    certainty: Certainty
    reasons: list[str]
    """What the certainty is based on."""
    against: list[str]
    """What contradicts it."""
    alternatives: list[str]
    """Ids of failures with the same message."""
    first: Place
    count: int
    """Lines with its message."""
    ranks: list[str]
    values: dict[str, str]
    """The named parts of the message."""
    fix: list[Step]
    checks: list[str]
    """Checks that confirm it on this machine."""
    commands: list[str]
    """Commands that run them."""
    sources: list[str]
    followed_by: list[Follower]


class OwnError(Part):
    """The program's own error, which no known failure explains."""

    text: str
    """Exception and message, without what libraries wrap around them."""
    first: Place
    program: str | None
    """The last place in the program's own files: ``train.py:12``; None if the traceback has none."""
    owner: Owner
    look: str
    """What to look at."""


class Silence(Part):
    """A process that wrote nothing more while others did, and whose log has no failure."""

    last: Place
    """Its last line."""
    seconds: float
    """From there to the last line of the others."""


class StackGroup(Part):
    """Processes whose main threads were at the same place when their stacks were dumped."""

    processes: list[str]
    """Their ranks, or the logs or numbers of processes."""
    activity: Activity
    frame: str
    """The innermost frame that shows it: ``all_reduce (distributed.py:80)``."""
    program: str | None
    """The innermost place in the program's own files."""


class Against(Part):
    """What is new since a run that worked."""

    good: list[str]
    """The logs of that run."""
    kinds: int
    """Number of kinds of lines that it has not."""
    new: list[Place]
    """The first of them, each where it is first."""
    missing: list[Place] = Field(default_factory=list)
    """The last kinds of lines of that run that this one has not."""
    versions: dict[str, tuple[str, str]] = Field(default_factory=dict)
    """Names with another version, then and now."""
    problem: Place | None
    """The first of them that is a warning or an error."""
    step_s: tuple[float | None, float | None]
    """Median seconds of a step, then and now."""
    loss: tuple[float | None, float | None]
    """The last loss, then and now."""


class RuledOut(Part):
    """A failure whose message is in the log, and that is not the cause."""

    id: str
    why: str


class LogSummary(Part):
    """A log that was read."""

    name: str
    lines: int
    bytes: int


class Confirmation(Part):
    """What the confirming checks found on this machine (``--check``)."""

    cause: str
    """Id of the failure."""
    check: str
    status: str
    observed: str


class Diagnosis(Document):
    """Why a job failed, as its logs show it."""

    schema_: Literal["kdoctor/diagnosis/v1"] = Field("kdoctor/diagnosis/v1", alias="schema")
    kdoctor: str
    conclusion: Conclusion
    causes: list[Cause]
    """The cause first. Further ones are independent failures."""
    also: list[Cause]
    """What the log shows too, and what did not stop the job."""
    ruled_out: list[RuledOut]
    lines: list[Place]
    """Where nothing is recognised: the lines that look like the failure, or the last one of each log without an end."""
    own: OwnError | None = None
    """Where nothing is recognised: the error with which the program ended."""
    silent: list[Silence] = Field(default_factory=list)
    """Of several logs with times, those that stop first, without a failure."""
    stacks: list[StackGroup] = Field(default_factory=list)
    """Where the processes were, if faulthandler or py-spy dumped their stacks, the largest group first."""
    against: Against | None = None
    """With ``--against``."""
    versions: dict[str, str]
    logs: list[LogSummary]
    notes: list[str]
    confirmations: list[Confirmation] = Field(default_factory=list)

    @property
    def first(self) -> Cause | None:
        """The cause, if one was found."""
        return self.causes[0] if self.causes else None
