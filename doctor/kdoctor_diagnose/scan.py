"""Reads logs once, in constant memory, and keeps what a diagnosis needs."""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain

from kdoctor.errors import UsageError
from kdoctor.text.sanitize import clean
from kdoctor.text.secrets import mask
from kdoctor_diagnose.found import FATAL, ErrorLine, Event, Scan
from kdoctor_diagnose.inputs import Log, PartlyReadError
from kdoctor_diagnose.line import Line, split, time_of
from kdoctor_diagnose.plain import GLOG, SHORT, plain
from kdoctor_diagnose.recogniser import EXCEPTION, Hit, Recogniser
from kdoctor_diagnose.stacks import MARKS
from kdoctor_diagnose.tracebacks import JUPYTER, TITLE, Frames, Raised, exception_after, frames_before, passed_on

_LONGEST = 4000
"""Characters of a line around the place that is recognised."""
_BEFORE = 500
_LATE = 160
"""From which character on a message begins late in its line."""
_DULL_BYTES = 16 << 20
"""Bytes of the dull lines that are remembered."""
_SHAPES, _REPEATED, _UNRECOGNISED = 5000, 200, 20
"""Lines with a trigger that are remembered, and how often one with a message, or without, is read until it is only
counted. Lines that differ by their numbers only are the same here, and a number can matter (an exit code)."""
_ERRORS = 200
"""Unrecognised lines that are kept of each half of a log."""
_EVENTS = 2000
"""Failures of one process each that are kept."""
_TAIL, _FRAMES = 16 * 1024, 256 * 1024
"""Bytes of the end of a log, and among which those frames of bars are left out that others overwrote."""
_LOOK_BACK = 4096
"""Bytes before a line in which its time may stand."""
_DIGITS = b"0123456789"
_CUT = 6
"""The score of a traceback whose end is not in the log."""
_PROGRESS = b"s/step"
"""What every progress bar of Keras has."""
_BAR = rb"(?:/step|- ETA: [\d:]{1,9}(?:s|(?![\d:s]))|[\d?](?:it/s|s/it)[^]\r\n]{0,80}\])"
_METRICS = rb"(?: - [^:\r\n]{1,60}: (?:-?\d+(?:\.\d{1,4})?(?:e[+-]\d\d)?|-?inf|nan))*"
_GLUED = re.compile(rb"(" + _BAR + _METRICS + rb")(?!e[+-]\d)(?=[^\s\d.]|\d{4}-\d\d-\d\d)")
"""A progress bar (of Keras, tqdm) and what another program wrote behind it, since it has no end of line."""
_LOSS, _STEP = b"loss", re.compile(rb"(?i)\b(?:step|epoch|iter\w{0,10}|batch)\W{0,3}\d.{0,100}loss\W{1,3}\d")
"""The progress of a custom loop, and the word by which it is found."""
_TOGETHER = re.compile(rb"(Epoch \d+/(?!1\n)\d+)\n(?:(?!Epoch |Traceback).*\n){0,3}\1\n")
"""The same epoch begins twice. A job that was started again writes more in between."""
_NO_START = re.compile(rb"(?i)epoch|step|loss|%%|Traceback|%b" % GLOG.pattern)
"""What a first line has whose repetition is not the start of another run."""
_LOGGED = b"INFO"
"""In a line of a logger, which is written at once."""
_TITLE = TITLE.encode()
_IGNORED, _NEAR = re.compile(rb"Exception ignored in|ERROR:asyncio:"), 3
"""What Python writes before an exception that ends nothing, such as one of a finalizer, and among how many lines before
its traceback."""
_CHAINED = re.compile(b"During handling of the above exception|The above exception was the direct cause")
"""What Python writes between the tracebacks of one end."""
_THREAD = b"Exception in thread "
"""What Python writes before the traceback of a thread, which has ended then, although its process goes on."""
_TQDM = (b"it/s", b"s/it")
_NUMBER = re.compile(rb"[\d?] ?(?:\xc2?[mu\xb5])?$")
"""What a bar has before these; a path or code does not (``ckpt/step_3``, ``git/src``)."""
_BUFFER = 8192
"""Bytes that a program prints before they are written. The bars of Keras are written at once."""
_LSF_WELL, _LSF_END = "Successfully completed.", "The output (if any) is above this job summary."
"""How the summary that LSF appends to a log says that the job ended well, and its last line."""
_WELL = re.compile(
    rf"(?i)^{_LSF_WELL}$|" + r"^(?!.*(?:fail|error)).*\b(?:train|job|run|fit|script|experiment)\w*\b.{0,40}\bsuccess"
)
"""A last line that says how it ended."""
_LEAST, _MARKS = 8, 20
"""Letters of a first line that shows a new start, and marks, from the end, among which the last progress is."""


def scan(logs: Sequence[Log], recogniser: Recogniser, *, most_bytes: int, deadline: float) -> Scan:
    """Read the logs in sequence, up to a number of bytes of all, and to a deadline as of ``time.monotonic``."""
    found = Scan()
    for log in logs:
        reader = _Reader(found, recogniser, len(found.names))
        found.names.append(log.name)
        complete = False
        try:
            for block in _until(log.blocks(), deadline):
                reader.feed(block)
                if sum(found.sizes) + reader.size > most_bytes:
                    found.notes.append(f"{log.name}: {_read_of(reader.size)}")
                    break
            else:
                complete = True
                found.finished |= {len(found.names) - 1} if log.is_finished() else set()
        except PartlyReadError as error:
            found.notes.append(f"{log.name}: {_read_of(reader.size)}: {error}")
        except UsageError as error:
            problem = error.message if log.name in error.message else f"{log.name}: {error.message}"
            if len(logs) == 1:
                raise UsageError(problem) from error
            found.notes.append(problem)
        reader.end(complete=complete)
        number = len(found.names) - 1
        found.passed[number] = max(found.passed.get(number, 0), log.passed() if complete else 0)
    return found


def _read_of(size: int) -> str:
    return f"only the first {size >> 20 or 1} MiB were read" if size else "what was read has zero bytes only"


def _until(blocks: Iterator[bytes], deadline: float) -> Iterator[bytes]:
    for block in blocks:
        yield block
        if time.monotonic() > deadline:
            raise PartlyReadError("then the time limit was reached (--timeout)")


class _Reader:
    def __init__(self, found: Scan, recogniser: Recogniser, number: int) -> None:
        self.size = 0
        self._found = found
        self._recogniser = recogniser
        self._number = number
        self._rest = b""
        self._lines = 0
        self._before = b""
        """The end of the last block."""
        self._dull: set[bytes] = set()
        """Lines without a trigger, without their digits."""
        self._dull_bytes = 0
        self._times: dict[bytes, int] = {}
        """Lines with one, and how often they were."""
        self._counted: dict[bytes, tuple[Event, ...]] = {}
        """Those that are only counted, and the failures on them."""
        self._events: dict[tuple[str, str | None, frozenset[int]], Event] = {}
        """By failure, process, and all failures of the line, among which the conclusion chooses."""
        self._raised: set[int] = set()
        """The lines with the exception of a traceback, which are kept with it."""
        self._opening = b""
        """The first line, without its digits."""
        self._starts: deque[int] = deque(maxlen=_ERRORS)
        """The last lines like it: where an error is before one, another run wrote to the same file."""
        self._first: list[ErrorLine] = []
        self._last: deque[ErrorLine] = deque(maxlen=_ERRORS)

    def feed(self, block: bytes) -> None:
        """Read a block. Its last line may continue in the next one."""
        if not block:
            return
        self.size += len(block)
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if not end and len(self._rest) < len(block) * 4:
            self._rest += block
            return
        text = self._rest + block[: end or len(block)]
        self._rest = block[end:] if end else b""
        # The message of a traceback, with that of another one in it, may go on in the next block.
        title = text.find(_TITLE, max(0, len(text) - SHORT))
        start = text.rfind(b"\n", 0, title) + 1 if title >= 0 else 0
        if start:
            text, self._rest = text[:start], text[start:] + self._rest
        self._read(text)

    def end(self, *, complete: bool) -> None:
        """Read the last line, and keep what was found. Only a log that was read to its end has a tail."""
        if self._rest:
            self._read(self._rest.removesuffix(b"\n") + b"\n")
        found = self._found
        found.stacks.end()
        found.lines.append(self._lines)
        found.sizes.append(self.size)
        events, errors = [*self._events.values()], [*self._first, *self._last]
        failed = [event.last for event in events if event.failure.kind in FATAL]
        failed += [error.line for error in errors if error.score >= _CUT]
        start = max((place for place in self._starts if failed and min(failed) < place < max(failed)), default=0)
        events = [event for event in events if event.last >= start]
        errors = [error for error in errors if error.line >= start]
        found.events += events
        found.errors += errors
        if complete:
            tail = found.tails[self._number] = self._tail()
            if tail and _WELL.match(tail[-1][1].text):
                found.passed[self._number] = tail[-1][0]

    def _read(self, text: bytes) -> None:
        """Read complete lines. Logs repeat themselves, so that most lines differ from a dull one only by numbers."""
        text = plain(text)
        frames = text.replace(b"\r", b"\n") if b"\r" in text else text
        shapes = frames.translate(None, _DIGITS).split(b"\n")
        new = set(shapes) - self._dull
        self._opening = self._opening or next((shape for shape in shapes if len(shape) > _LEAST), b"")
        if new:
            self._read_lines(text, frames.split(b"\n"), shapes, new)
        if self._opening and self._opening in shapes and not _NO_START.search(self._opening):
            self._starts += [place for place, shape in enumerate(shapes, self._lines + 1) if shape == self._opening]
        if self._found.stacks.is_open or any(mark in text for mark in MARKS):
            self._read_stacks(text, frames)
        self._read_progress(text)
        if _TOGETHER.search(text):
            self._found.together.add(self._number)
        self._lines += text.count(b"\n")
        last = text[-_FRAMES:].split(b"\n") if b"\r" in text else [text[-_TAIL:]]
        self._before = (self._before + b"\n".join(line.rstrip(b"\r").rpartition(b"\r")[2] for line in last))[-_TAIL:]

    def _read_progress(self, text: bytes) -> None:
        bar, printed = _last(_PROGRESS, text), _last(_LOSS, text, _STEP, _BEFORE, _BEFORE)
        if printed >= 0 and _LOGGED in text[text.rfind(b"\n", 0, printed) + 1 : printed]:
            bar = max(bar, printed)
        step = max(bar, printed) if max(bar, printed) >= 0 else max(_last(mark, text) for mark in _TQDM)
        if step < 0:
            return
        line = self._found.progress[self._number] = self._lines + 1 + text.count(b"\n", 0, step)
        before = len(self._before)
        places = [before + bar] if bar >= 0 else []
        places += [before + printed - _BUFFER] if printed >= _BUFFER - before else []
        if places:
            later = text.count(b"\n", max(0, max(places) - before), step) + self._before[max(places) :].count(b"\n")
            self._found.passed[self._number] = line - later

    def _read_stacks(self, text: bytes, frames: bytes) -> None:
        parts = (split(clean(line[:_LONGEST].decode("utf-8", "replace"))) for line in frames.split(b"\n")[:-1])
        self._found.stacks.read(self._found.names[self._number], parts)
        last = max(map(text.rfind, MARKS))
        if last >= 0:
            self._found.stacked[self._number] = self._lines + 1 + text.count(b"\n", 0, last)

    def _read_lines(self, text: bytes, lines: list[bytes], shapes: list[bytes], new: set[bytes]) -> None:
        """Read the lines with one of the new shapes. Those without a trigger are dull from now on."""
        triggers = self._recogniser.lines
        has_frames = b"\r" in text
        ends = list(accumulate(len(line) + 1 for line in lines)) if has_frames else []
        again: dict[int, tuple[Event, int]] = {}

        def number(place: int) -> int:
            before = text.count(b"\n", 0, ends[place] - 1) if has_frames else place
            return self._lines + 1 + before

        code = range(0)
        for place, shape in enumerate(shapes):
            if shape not in new:
                continue
            raw = lines[place]
            if shape in self._counted:
                for event in self._counted[shape]:
                    event.count += 1
                    again[id(event)] = (event, place)
                continue
            raw = raw if len(raw) >= _LONGEST or raw.startswith(b"{") else _GLUED.sub(rb"\1\n", raw)
            found = triggers.search(b"\n" + raw)
            if found is None:
                new.discard(shape)
                self._dull_bytes += len(shape)
                if self._dull_bytes > _DULL_BYTES:
                    self._dull, self._dull_bytes = set(), 0
                self._dull.add(shape)
                continue
            before = lines[max(0, place - 40) : place]
            code = self._find_exception(raw, lines, place, number) or code
            piece = raw[max(0, found.start() - 1 - _BEFORE) : found.start() + _LONGEST]
            self._line(piece, number(place), shape, before, is_code=place in code)

        for event, place in again.values():
            event.last = max(event.last, number(place))

    def _find_exception(self, raw: bytes, lines: list[bytes], place: int, number: Callable[[int], int]) -> range:
        """Keep the exception of a traceback that begins on a line, or that a line announces; the lines of only code.

        IPython also shows the code around each line, which may raise other errors. An ignored exception ends nothing.
        """
        title, ending = "", None
        if _TITLE in raw:
            title = next(part for part in raw.split(b"\n") if _TITLE in part).decode("utf-8", "replace")
            title = title if title.startswith("{") else title[-_LONGEST:]
            ending = exception_after(title, lines, place + 1)
        elif raw.rstrip().endswith((b":", b"found.", b").")) or b"has occurred: " in raw:
            ending = passed_on(lines, place)
        before = [*self._before[-_BEFORE:].splitlines(), *lines[max(0, place - _NEAR) : place]]
        if ending and before and _THREAD in before[-1]:
            self._found.threads.add((self._number, number(ending.place)))
        if ending and any(map(_CHAINED.search, before[-_NEAR:])):
            self._found.chained.add((self._number, number(ending.place)))
        if any(map(_IGNORED.search, before[-_NEAR if title else -1 :])):
            line = ending.line if ending else split(clean(raw.decode("utf-8", "replace")))
            last = ending.place if ending else place
            self._keep(0, line, number(last), ending or Frames())
            return range(place, last + 1)
        if ending and ending.text:
            self._raised.add(number(place))  # the title says nothing more
            self._exception(ending, number(ending.place), lines[ending.place])
        elif ending:
            self._keep(_CUT, ending.line, number(place), ending)
        return range(place + 1, ending.place) if ending and JUPYTER.match(split(title).text) else range(0)

    def _exception(self, raised: Raised, number: int, raw: bytes) -> None:
        """Keep the exception of a traceback, unless its line is that of a known failure."""
        text = split(clean(raw.decode("utf-8", "replace"))).text
        line, hits, inner = raised.line, self._messages(raised.line.text), []
        if not self._messages(text) if hits else raised.text not in line.text:
            # The class and the message that it passes on may be known together.
            inner = self._messages(raised.text.partition(": ")[2])
            alone = {hit.rule for hit in inner}
            hits = [hit for hit in self._messages(raised.text) if hit.rule not in alone]
            names = frozenset(id(hit.rule.failure) for hit in hits)
            for hit in hits:
                self._take(hit, replace(line, text=raised.text), number, names)
        placed = f"{raised.text} (raised in {raised.file})"  # where it was raised can say what the words mean
        told = [hit for hit in self._messages(placed) if hit.match.end() > len(raised.text)]
        for hit in told:
            self._take(hit, replace(line, text=raised.text), number, frozenset({id(hit.rule.failure)}))
        follows = [hit for hit in inner if hit.rule.failure and hit.rule.failure.follows]
        known = [hit.rule.failure for hit in (*hits, *told, *follows) if hit.rule.failure]
        if all(failure.can_be_ruled_out or failure.kind not in (*FATAL, "harmless") for failure in known):
            self._keep(EXCEPTION, replace(line, text=raised.text), number, raised)
            self._raised.add(number)

    def _messages(self, text: str) -> list[Hit]:
        return [hit for hit in self._recogniser.recognise(text) if hit.rule.role == "message"]

    def _line(self, raw: bytes, number: int, shape: bytes, before: list[bytes], *, is_code: bool) -> None:
        found = (self._part(part, number, before, is_code=is_code) for part in raw.split(b"\n"))
        events, recognised = zip(*found, strict=True)
        self._repeats(shape, tuple(chain(*events)), most=_REPEATED if any(recognised) else _UNRECOGNISED)

    def _part(self, raw: bytes, number: int, before: list[bytes], *, is_code: bool) -> tuple[tuple[Event, ...], bool]:
        """The failures on a line, or on what was written behind a progress bar, and whether anything is recognised."""
        text = clean(raw.decode("utf-8", "replace"))
        line = split(text)
        hits = self._recogniser.recognise(line.text)
        # Its level may say that it is an error. A severity does not: Google Cloud gives each line of stderr that one.
        if not hits and text.startswith("{") and '"severity"' not in text:
            line = replace(line, text=text)
            hits = self._recogniser.recognise(text)
        if is_code:
            hits = [hit for hit in hits if hit.rule.role not in ("message", "error")]
        if line.time is None and hits:
            line = Line(line.text, line.rank, self._time_before(before))
        messages = sorted((hit for hit in hits if hit.rule.role == "message"), key=lambda hit: hit.rule.weight)
        longest = {id(hit.rule.failure): hit for hit in messages}
        events = tuple(self._take(hit, line, number, frozenset(longest)) for hit in longest.values())
        for event in events:
            if event.failure.follows and event.line == number:
                event.before = _text_before([*self._before[-_LOOK_BACK:].splitlines(), *before], line.rank)
        for hit in hits:
            self._note(hit, line, number)
        errors = [hit.rule.weight for hit in hits if hit.rule.role == "error"]
        # Versions or other lines may rule a failure out. Then the line is a failure that is not known.
        if errors and number not in self._raised and all(event.failure.can_be_ruled_out for event in events):
            frames = frames_before(before if max(errors) == EXCEPTION else [])
            self._keep(max(errors), line, number, frames)
        return events, bool(hits)

    def _keep(self, score: int, line: Line, number: int, where: Frames | Raised) -> None:
        error = ErrorLine(score, self._number, number, mask(line.text), line.rank, line.time, where.own, where.file)
        error = replace(error, is_raised=score == EXCEPTION and isinstance(where, Raised))
        (self._first if len(self._first) < _ERRORS else self._last).append(error)

    def _repeats(self, shape: bytes, events: tuple[Event, ...], most: int) -> None:
        """Remember a line, so that it is only counted once it was often enough the same."""
        times = self._times.get(shape, 0) + 1
        if times >= most:
            self._counted[shape] = events
        if len(self._times) < _SHAPES:
            self._times[shape] = times

    def _take(self, hit: Hit, line: Line, number: int, alike: frozenset[int]) -> Event:
        failure = hit.rule.failure
        assert failure is not None  # noqa: S101 - a message belongs to a failure
        values = {name: value for name, value in hit.match.groupdict().items() if value}
        text = mask(line.text)
        new = Event(failure, hit.rule.weight, self._number, number, text, values, line.rank, line.time)
        new.quote, new.last = _quoted(text, hit.match[0]), number
        event = self._events.get((new.name, line.rank, alike))
        if event is not None:
            event.count += 1
            event.last = number
            return event
        if len(self._events) < _EVENTS:
            self._events[new.name, line.rank, alike] = new
        return new

    def _note(self, hit: Hit, line: Line, number: int) -> None:
        rule = hit.rule
        if rule.role == "version":
            self._found.versions.setdefault(rule.name, hit.match["version"].rstrip("."))
        elif rule.role == "clue" and rule.failure:
            self._found.clues.add(rule.failure.id)
        elif rule.role == "unless" and rule.failure:
            self._found.denied.setdefault(rule.failure.id, mask(line.text))
            self._found.denied_last[rule.failure.id] = (self._number, number)

    def _time_before(self, lines: list[bytes]) -> float | None:
        for line in reversed(lines or self._before[-_LOOK_BACK:].split(b"\n")):
            found = time_of(line[:_BEFORE].decode("utf-8", "replace"))
            if found is not None:
                return found
        return None

    def _tail(self) -> list[tuple[int, Line]]:
        lines = self._before.split(b"\n")
        first = self._lines - len(lines) + 2
        parts = ((at, part) for at, line in enumerate(lines, first) for part in _GLUED.sub(rb"\1\n", line).split(b"\n"))
        shown = []
        for number, line in parts:
            frame = next((frame for frame in reversed(line.split(b"\r")) if frame.strip()), b"")
            part = split(clean(frame.decode("utf-8", "replace")))
            if part.text:
                shown.append((number, replace(part, text=mask(part.text))))
        ends = [place for place, (_, line) in enumerate(shown, 1) if line.text == _LSF_WELL]
        return shown[: ends[-1]] if ends and shown[-1][1].text.startswith(_LSF_END) else shown


def _text_before(lines: Sequence[bytes], rank: str | None) -> str:
    """The last line that the same process wrote, before the traceback that ends here."""
    titles = [place for place, line in enumerate(lines) if _TITLE in line]
    lines = lines[: titles[-1]] if titles and lines[-1].startswith(b" ") else lines
    parts = (split(clean(line[-_BEFORE:].decode("utf-8", "replace"))) for line in reversed(lines))
    return mask(next((part.text for part in parts if part.rank == rank and part.text.strip()), ""))


def _quoted(text: str, message: str) -> str:
    """The text without most of what comes before a message that begins late."""
    start = text.find(message)
    first = text.split(maxsplit=1)[0][:80]
    return text if start < _LATE else f"{first} ... {text[start:]}"


def _last(mark: bytes, text: bytes, around: re.Pattern[bytes] = _NUMBER, before: int = 5, after: int = 0) -> int:
    """Where a mark of progress is last, with a pattern around it, or -1."""
    place = len(text)
    for _ in range(_MARKS):
        place = text.rfind(mark, 0, place)
        if place < 0 or around.search(text, max(0, place - before), place + after):
            return place
    return -1
