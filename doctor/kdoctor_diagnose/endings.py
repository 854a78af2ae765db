"""Finds the failures that show by the last line before a job did nothing more. It is pure."""

import re
from collections.abc import Iterable, Iterator

from kdoctor.failures.known import KnownFailures
from kdoctor_diagnose.line import Line
from kdoctor_diagnose.scan import Event, Scan

_WEIGHT = 1000
"""That nothing follows says more than the message."""
_SEVERAL, _SILENT_S = 2, 30.0
"""Logs that can be compared, and seconds by which a silent one ends before the others."""
_TRACEBACK = "Traceback (most recent call last)"
_INTERRUPTED = re.compile("^KeyboardInterrupt$")


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


def silent(found: Scan) -> Iterator[tuple[int, int, Line, float]]:
    """The logs of trainings that stop well before the others, without a failure: number, last line, and seconds."""
    ends = {log: tail[-1] for log, tail in found.tails.items() if tail and log in found.progress}
    times = {log: line.time for log, (_, line) in ends.items() if line.time is not None}
    failed = {event.log for event in found.events} | {error.log for error in found.errors}
    if not failed or len(times) < _SEVERAL:
        return
    latest = max(times.values())
    for log, time in times.items():
        if log not in failed and latest - time > _SILENT_S:
            yield log, *ends[log], latest - time


def _last(tail: Iterable[tuple[int, Line]], endings: list[re.Pattern[str]]) -> tuple[int, Line]:
    """The last line that does not say that the job was ended from outside; an empty one if there is none."""
    in_traceback = False
    for number, line in reversed([*tail]):
        if in_traceback:
            in_traceback = _TRACEBACK not in line.text
        elif _INTERRUPTED.search(line.text):
            in_traceback = True
        elif not any(pattern.search(line.text) for pattern in endings):
            return number, line
    return 0, Line("")
