"""What a reading of logs keeps."""

from dataclasses import dataclass, field

from kdoctor.failures.known import KnownFailure
from kdoctor_diagnose.line import Line
from kdoctor_diagnose.stacks import Stacks

FATAL = frozenset({"crash", "hang"})
"""The kinds of failures that end a job."""


@dataclass
class Event:
    """A known failure in a log."""

    failure: KnownFailure
    weight: int
    log: int
    """Number of the log."""
    line: int
    text: str
    values: dict[str, str]
    """The named parts of the message."""
    rank: str | None
    time: float | None
    count: int = 1
    last: int = 0
    """The last line with it."""
    quote: str = ""
    """The text with the message near its beginning."""
    before: str = ""
    """The line before it, of a failure that follows from another one."""
    at_end: bool = False
    """Whether it shows only by being the last line before the job did nothing more."""

    @property
    def name(self) -> str:
        """The failure's id, with the code of a table."""
        code = self.values.get("code") if self.failure.table else None
        return f"{self.failure.id}_{code}" if code else self.failure.id


@dataclass(frozen=True)
class ErrorLine:
    """A line that looks like a failure."""

    score: int
    log: int
    line: int
    text: str
    rank: str | None
    time: float | None
    own: str | None = None
    """Of an exception, the last place in the program's own files."""
    file: str = ""
    """Of an exception, the file in which it was raised."""
    is_raised: bool = False
    """Whether it is the exception of a traceback."""


@dataclass
class Scan:
    """What was found in all logs."""

    events: list[Event] = field(default_factory=list)
    clues: set[str] = field(default_factory=set)
    """Ids of the failures of which a clue was found."""
    denied: dict[str, str] = field(default_factory=dict)
    """Ids of the failures that a line rules out, and the line."""
    denied_last: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The log and number of the last such line."""
    versions: dict[str, str] = field(default_factory=dict)
    errors: list[ErrorLine] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    progress: dict[int, int] = field(default_factory=dict)
    """The last line of each log on which a training made progress."""
    passed: dict[int, int] = field(default_factory=dict)
    """The line of each log up to which nothing ended the job, because it is sure that it went on."""
    threads: set[tuple[int, int]] = field(default_factory=set)
    """The logs and lines of the exceptions that ended only a thread."""
    chained: set[tuple[int, int]] = field(default_factory=set)
    """Those of the exceptions that were raised because of another one, or while that one was handled."""
    together: set[int] = field(default_factory=set)
    """The logs into which several processes wrote without a name, so that another one may have gone on."""
    finished: set[int] = field(default_factory=set)
    """The logs that show besides their lines that what was run has ended well."""
    tails: dict[int, list[tuple[int, Line]]] = field(default_factory=dict)
    """The last lines of each log, and their numbers."""
    stacks: Stacks = field(default_factory=Stacks)
    stacked: dict[int, int] = field(default_factory=dict)
    """The last line of each log with a stack."""
    notes: list[str] = field(default_factory=list)
    """What of the logs was not read, and why."""
