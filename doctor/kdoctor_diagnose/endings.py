"""Finds the failures that show by the last lines of a log. It is pure."""

import re
import signal
from collections.abc import Iterable, Iterator

from kdoctor.failures.known import KnownFailures
from kdoctor_diagnose.found import ErrorLine, Event, Scan
from kdoctor_diagnose.line import Line
from kdoctor_diagnose.tracebacks import EXIT_CODE, LOG_PREFIX, NO_MESSAGE, TITLE, frames_before

_WEIGHT = 1000
"""That nothing follows says more than the message."""
_SEVERAL, _SILENT_S = 2, 30.0
"""Logs that can be compared, and seconds by which a silent one ends before the others."""
_WORDS, _PIECE = 3, 4
"""The scores of a last line that speaks of a failure, and of a piece of a traceback without its title."""
END = 20
"""Lines with which a log ends."""
_FAILURE = re.compile(
    r"(?i)\b(?:fail\w*|fatal|(?:mpi_)?abort\w*|crash\w*|died|kill(?:ed|ing)|panic\w*|denied|exception|corrupt\w*"
    r"|violation|cannot|can't|unable|not found|no such|preempt\w*|evicted|out.of.memory|time(?:out|d out)"
    r"|signal \d+|sig[a-z]{3,4}|mismatch\w*|expected\b.{1,80}\bbut (?:got|found|received)|not defined)\b"
    r"|\bErrors?\b|\berror:"
)
_WELL = re.compile(
    r"(?i)\b(?:0|no|without)(?: \w+)? (?:fail|error)|\binfo\b|\berror rate\b|^\W*(?:saved|wrote|written|exported)\b"
    r"|\b(?:error|fail\w*)s?(?: \w+){0,2}\W{1,3}(?:\d*\.\d|0\b|none|false)|original exception that occurred"
    r"|\b(?:if|when|whether|in case)(?: \w+){1,3} (?:fails?|errors?|crash(?:es)?|dies?)\b"
)
"""Failures that are counted as zero, metrics, saved or not yet there, and what JAX writes after an exception."""
_EXCEPTION = re.compile(r"[\w.]{1,120}(?:Error|Exception): \S")
"""How an exception begins that a program of another process logged."""
_SIGNALS = tuple(name.casefold() for name in map(signal.strsignal, signal.valid_signals()) if name)
"""What a shell writes where a signal ended a program."""
_IN_SCRIPT = re.compile(r"\S{1,200}: line \d+: +\d+ ")
"""What it writes before that in a script. The command follows."""
_STACK = re.compile(
    r'\s*(?:>>> +)?File "[^"]+", line \d+, in |(?:File )?\S+\.py\S* in \w+\(|-{2,}> ?\d+ |\s+\u2022 \w+='
    r"|\s*\[\[\{\{node |.*\[Op:\w+\]|\d+ derived errors ignored|(?:Call a|A)rguments received by|\s+raise [A-Z]\w+"
)
_NODE = re.compile(r"\[\[|\[Op:")
INFORMS = re.compile(r"(?:^|[\s:])[IW](?:\d{4} | (?:tensorflow|external)/)|\b(?:INFO|WARNING|\w{0,20}Warning): ?")
"""The levels of lines that need not be about a failure."""
WARNED = re.compile(r".{1,200}?:\d+: \w{0,40}Warning: ")
"""How Python begins a warning."""
_RESULT = re.compile(
    r"(?i)^(?!.*(?:fail|error\b(?! \d)|\bno[tr]?\b|miss|cannot|abort|/step|it/s))"
    r".*\b(?:done|success\w*|finished|completed?|saved|written|exported|early stopping|restoring model weights"
    r"|loss for final step|(?:total|execution|overall) (?:\w+ )?time\b.*\d"
    r"|(?:\w*(?:loss|acc\w*|error|auc|score|precision|recall|m[as]e)(?: \([^)]{1,20}\))?)\W{1,4}\d)"
)
"""A last line with what a job has done."""
_STEP = re.compile(r"(?i)\b(?:step|iter\w{0,10}|batch)\W{0,3}(?P<step>\d+)(?!\d|/(?P=step)\b).{0,100}loss\b")
"""A step that need not be the last one."""
_BAR = re.compile(r"(?:.{0,160}[|%] ?|\s*)(?P<step>\d+)/(?P<steps>\d+) [\[\u2501]")
_EPOCH = re.compile(r"Epoch (?P<epoch>\d+)/(?P<epochs>\d+)$")
_NO_WORDS = re.compile(
    rf"{LOG_PREFIX.pattern}|{NO_MESSAGE.pattern}|To enable the following instructions|WARNING: All log messages before"
    r"|.*\(core dumped\)|(?i:.*\b(?:gpus?|cuda|devices?)\b)|\W*(?:False|\d[\d.]*)?\W*$"
)
"""What TensorFlow writes while it starts, and what a program that looks for GPUs writes."""
_INTERRUPTED = re.compile("^KeyboardInterrupt:?$")


def hangs(found: Scan, known: KnownFailures) -> Iterator[Event]:
    """The failures of jobs that did nothing more, until something ended them from outside.

    Without such an end, a log that only stops where many do shows nothing, unless other lines of it name the failure.
    """
    endings = [re.compile(text) for failure in known.failure_modes if failure.ends_a_hang for text in failure.messages]
    several = len(found.tails) > 1  # a process may wait for the one that failed
    for number, tail in found.tails.items():
        place, line = _last(tail, endings)
        was_ended = bool(tail) and place < tail[-1][0]
        for failure in known.failure_modes:
            if failure.certainty == "possible" and not (was_ended or several or failure.id in found.clues):
                continue  # the job may have gone on, and only the log ends here
            for match in filter(None, (re.search(pattern, line.text) for pattern in failure.at_end if line.text)):
                values = match.groupdict()
                yield Event(failure, _WEIGHT, number, place, line.text, values, line.rank, line.time, at_end=True)


def last_words(found: Scan) -> Iterator[ErrorLine]:
    """The last lines of logs that speak of a failure in any words, or that are a piece of a traceback."""
    judged = {(item.log, item.line) for item in found.errors} | {(item.log, item.last) for item in found.events}
    for log, tail in found.tails.items():
        # Indented lines continue the one before, and an exit code says nothing.
        said = [item for item in tail[-END:] if not EXIT_CODE.search(item[1].text)]
        pieces = [(_PIECE, *_said_at(item, tail)) for item in _pieces(said)]
        last = [item for item in said if not item[1].text[0].isspace()] or said
        speaks = [(_WORDS, *item) for item in last[-1:] if _speaks_of_failure(item[1].text)]
        is_open = all(error.log != log or EXIT_CODE.search(error.text) for error in found.errors)
        for score, number, line in (*speaks, *(pieces[-1:] if is_open else [])):
            if (log, number) not in judged:
                own = frames_before([part.text.encode() for at, part in tail if at <= number]).own
                yield ErrorLine(score, log, number, line.text, line.rank, line.time, own)


def _pieces(tail: Iterable[tuple[int, Line]]) -> Iterator[tuple[int, Line]]:
    """The pieces of tracebacks that do not continue a warning."""
    informs = False
    for number, line in tail:
        if not _STACK.match(line.text):
            informs = bool(INFORMS.search(line.text))
        elif not informs:
            yield number, line


def _said_at(piece: tuple[int, Line], tail: list[tuple[int, Line]]) -> tuple[int, Line]:
    """The message before a node of a graph, which only is where an operation failed; of another piece that one."""
    before = (item for item in reversed(tail) if item[0] < piece[0] and not NO_MESSAGE.match(item[1].text))
    return next(before, piece) if _NODE.search(piece[1].text) else piece


def _speaks_of_failure(text: str) -> bool:
    prefix = LOG_PREFIX.match(text)
    is_said = _FAILURE.search(text) and not (_WELL.search(text) or prefix or WARNED.match(text))
    is_forwarded = prefix and _EXCEPTION.match(text, prefix.end())
    said, in_script = text.casefold().removesuffix(" (core dumped)"), _IN_SCRIPT.match(text)
    is_signal = said.startswith(_SIGNALS, in_script.end()) if in_script else said in _SIGNALS
    return bool(is_said or is_forwarded or is_signal)


def words_after(found: Scan, event: Event) -> str | None:
    """The last line of the log of a failure, if the program wrote it later, and about other things than GPUs."""
    number, line = (found.tails.get(event.log) or [(0, Line(""))])[-1]
    return line.text if number > event.last and not _NO_WORDS.match(line.text) else None


def epochs_after(found: Scan, event: Event) -> tuple[int, bool]:
    """How many epochs the process of a failure began after it, and whether the last one is that of its training.

    No replica begins two without the others. Where a log does not name its processes, the last one may be before it.
    """
    tail = [(at, line.text) for at, line in found.tails.get(event.log, []) if line.rank == event.rank]
    epochs = [(at, epoch) for at, text in tail if (epoch := _EPOCH.match(text))]
    later = {epoch[0] for at, epoch in epochs if at > event.last}
    bars = [bar for _, text in tail if (bar := _BAR.match(text))]
    is_last = bool(epochs) and all(len({*count.groups()}) == 1 for count in (epochs[-1][1], *bars[-1:]))
    return len(later), is_last and (bool(later) or event.rank is None)


def has_ended(found: Scan) -> bool:
    """Whether the logs show that the job did its work: a result, or a training to its last step."""
    ends = [_ended(log, tail, found) for log, tail in found.tails.items()]
    return True in ends and False not in ends


def _ended(log: int, tail: list[tuple[int, Line]], found: Scan) -> bool | None:
    """Whether a training ended as it should; None where the log does not show one."""
    if log in found.finished:
        return True
    texts = [line.text for _, line in tail]
    epochs = [epoch for epoch in map(_EPOCH.match, texts) if epoch]
    bar = next(filter(None, map(_BAR.match, reversed(texts))), None)
    if log in found.together and texts.count(epochs[-1][0] if epochs else "") < _SEVERAL:
        return False
    if texts and not _BAR.match(texts[-1]) and (_STEP.search(texts[-1]) or _RESULT.match(texts[-1])):
        return not _STEP.search(texts[-1])
    if log not in found.progress or not (epochs or (bar and ": " in bar.string)):
        return None  # a bar without metrics is one of predictions, of which more may come
    return not (epochs and epochs[-1]["epoch"] != epochs[-1]["epochs"]) and (not bar or bar["step"] == bar["steps"])


def silent(found: Scan) -> Iterator[tuple[tuple[int, int, Line], float]]:
    """The logs of trainings that stop well before the others, without a failure: the last line, and seconds."""
    ends = {log: tail[-1] for log, tail in found.tails.items() if tail and log in found.progress}
    times = {log: line.time for log, (_, line) in ends.items() if line.time is not None}
    failed = {event.log for event in found.events} | {error.log for error in found.errors}
    if not failed or len(times) < _SEVERAL:
        return
    latest = max(times.values())
    for log, time in times.items():
        if log not in failed and latest - time > _SILENT_S:
            yield (log, *ends[log]), latest - time


def _last(tail: Iterable[tuple[int, Line]], endings: list[re.Pattern[str]]) -> tuple[int, Line]:
    """The last line that does not say that the job was ended from outside; an empty one if there is none."""
    in_traceback = False
    for number, line in reversed([*tail]):
        if in_traceback:
            in_traceback = TITLE not in line.text
        elif _INTERRUPTED.search(line.text):
            in_traceback = True
        elif not any(pattern.search(line.text) for pattern in endings):
            return number, line
    return 0, Line("")
