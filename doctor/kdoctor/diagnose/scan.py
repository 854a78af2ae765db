"""Reads logs once, in constant memory, and keeps what a diagnosis needs."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from kdoctor.diagnose.inputs import Log
from kdoctor.diagnose.line import Line, split, time_of
from kdoctor.diagnose.recogniser import Hit, Recogniser
from kdoctor.errors import UsageError
from kdoctor.failures.known import KnownFailure
from kdoctor.text.sanitize import clean
from kdoctor.text.secrets import mask

_LONGEST = 4000
"""Characters of a line around the place that is recognised."""
_BEFORE = 500
_SHAPES = 20_000
"""Different lines that are remembered, so that repeated ones cost nothing."""
_ERRORS = 200
"""Unrecognised lines that are kept of each half of a log."""
_EVENTS = 2000
"""Failures of one process each that are kept."""
_TAIL = 16 * 1024
_LOOK_BACK = 4096
"""Bytes before a line in which its time may stand."""
_DIGITS = b"0123456789"
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\))")
_PROGRESS = b"/step"
"""What every progress bar of Keras has."""


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


@dataclass
class Scan:
    """What was found in all logs."""

    events: list[Event] = field(default_factory=list)
    clues: set[str] = field(default_factory=set)
    """Ids of the failures of which a clue was found."""
    denied: dict[str, str] = field(default_factory=dict)
    """Ids of the failures that a line rules out, and the line."""
    versions: dict[str, str] = field(default_factory=dict)
    errors: list[ErrorLine] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    progress: dict[int, int] = field(default_factory=dict)
    """The last line of each log on which a training made progress."""
    tails: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    """The last lines of each log."""
    notes: list[str] = field(default_factory=list)


def scan(logs: Sequence[Log], recogniser: Recogniser, *, most_bytes: int, deadline: float) -> Scan:
    """Read the logs, one after another.

    Args:
        logs: the logs.
        recogniser: the known failures.
        most_bytes: bytes of all logs that are read.
        deadline: when to stop, as of ``time.monotonic``.
    """
    found = Scan()
    for log in logs:
        reader = _Reader(found, recogniser, len(found.names))
        found.names.append(log.name)
        try:
            for block in log.blocks():
                reader.feed(block)
                if sum(found.sizes) + reader.size > most_bytes or time.monotonic() > deadline:
                    found.notes.append(f"{log.name}: only the first {reader.size >> 20} MiB were read")
                    break
        except UsageError as error:
            if len(logs) == 1:
                raise
            found.notes.append(error.message)
        reader.end()
    return found


class _Reader:
    """Reads one log block by block."""

    def __init__(self, found: Scan, recogniser: Recogniser, number: int) -> None:
        self.size = 0
        self._found = found
        self._recogniser = recogniser
        self._number = number
        self._rest = b""
        self._lines = 0
        self._before = b""
        """The end of the last block."""
        self._shapes: dict[bytes, tuple[Event, ...]] = {}
        self._events: dict[tuple[str, str | None], Event] = {}
        self._first: list[ErrorLine] = []
        self._last: deque[ErrorLine] = deque(maxlen=_ERRORS)

    def feed(self, block: bytes) -> None:
        """Read a block. Its last line may continue in the next one."""
        self.size += len(block)
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if not end and len(self._rest) < len(block) * 4:
            self._rest += block
            return
        text = self._rest + block[: end or len(block)]
        self._rest = block[end:] if end else b""
        self._read(text)

    def end(self) -> None:
        """Read the last line, and keep what was found."""
        if self._rest:
            self._read(self._rest + b"\n")
        found = self._found
        found.lines.append(self._lines)
        found.sizes.append(self.size)
        found.events += self._events.values()
        found.errors += self._first + list(self._last)
        found.tails[self._number] = self._tail()

    def _read(self, text: bytes) -> None:
        text = _plain(text)
        start = last = 0
        number = self._lines + 1
        while True:
            found = self._recogniser.lines.search(text, last)
            if found is None:
                break
            place = found.start() + (text[found.start()] == ord("\n"))
            begin = max(text.rfind(b"\n", last, place), text.rfind(b"\r", last, place), last - 1) + 1
            end = _line_end(text, place)
            number += text.count(b"\n", start, place)
            start = place
            self._line(text, begin, end, place, number)
            last = end
        step = text.rfind(_PROGRESS)
        if step >= 0:
            self._found.progress[self._number] = self._lines + 1 + text.count(b"\n", 0, step)
        self._lines += text.count(b"\n")
        self._before = (self._before + text)[-_TAIL:]

    def _line(self, block: bytes, begin: int, end: int, place: int, number: int) -> None:
        raw = block[max(begin, place - _BEFORE) : min(end, place + _LONGEST)]
        shape = raw.translate(None, _DIGITS)
        known = self._shapes.get(shape)
        if known is not None:
            for event in known:
                event.count += 1
            return
        line = split(mask(clean(raw.decode("utf-8", "replace"))))
        hits = self._recogniser.recognise(line.text)
        if line.time is None and hits:
            line = Line(line.text, line.rank, self._time_before(block, begin))
        events = tuple(self._take(hit, line, number) for hit in hits if hit.rule.role == "message")
        for hit in hits:
            self._note(hit, line)
        errors = [hit.rule.weight for hit in hits if hit.rule.role == "error"]
        if errors and not events:
            error = ErrorLine(max(errors), self._number, number, line.text, line.rank, line.time)
            if len(self._first) < _ERRORS:
                self._first.append(error)
            else:
                self._last.append(error)
        if len(self._shapes) < _SHAPES:
            self._shapes[shape] = events

    def _take(self, hit: Hit, line: Line, number: int) -> Event:
        failure = hit.rule.failure
        assert failure is not None  # noqa: S101 - a message belongs to a failure
        values = {name: value for name, value in hit.match.groupdict().items() if value}
        new = Event(failure, hit.rule.weight, self._number, number, line.text, values, line.rank, line.time)
        event = self._events.get((new.name, line.rank))
        if event is not None:
            event.count += 1
            return event
        if len(self._events) < _EVENTS:
            self._events[new.name, line.rank] = new
        return new

    def _note(self, hit: Hit, line: Line) -> None:
        rule = hit.rule
        if rule.role == "version":
            self._found.versions.setdefault(rule.name, hit.match["version"].rstrip("."))
        elif rule.role == "clue" and rule.failure:
            self._found.clues.add(rule.failure.id)
        elif rule.role == "unless" and rule.failure:
            self._found.denied.setdefault(rule.failure.id, line.text)

    def _time_before(self, block: bytes, begin: int) -> float | None:
        """The last time before a line."""
        text = block[max(0, begin - _LOOK_BACK) : begin] or self._before[-_LOOK_BACK:]
        for line in reversed(text.decode("utf-8", "replace").splitlines()):
            found = time_of(line)
            if found is not None:
                return found
        return None

    def _tail(self) -> list[tuple[int, str]]:
        lines = clean(self._before.decode("utf-8", "replace")).replace("\\x0d", "\n").splitlines()
        shown = [mask(line.rstrip()) for line in lines if line.strip()]
        # Frames of a progress bar count as lines here, so the number is that of the end.
        return [(self._lines, split(line).text) for line in shown[-40:]]


def _plain(text: bytes) -> bytes:
    """The text without colours. Backspaces of old progress bars end a line, as carriage returns do."""
    text = _ESCAPES.sub(b"", text) if b"\x1b" in text else text
    text = text.replace(b"\r\n", b"\n") if b"\r\n" in text else text
    return text.replace(b"\x08", b"\r") if b"\x08" in text else text


def _line_end(text: bytes, place: int) -> int:
    feed = text.find(b"\n", place)
    feed = len(text) if feed < 0 else feed
    carriage = text.find(b"\r", place, feed)
    return feed if carriage < 0 else carriage


