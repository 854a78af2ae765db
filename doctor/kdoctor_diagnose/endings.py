"""Finds the failures that show by the last line before a job did nothing more. It is pure."""

import re
from collections.abc import Iterable, Iterator

from kdoctor.failures.known import KnownFailures
from kdoctor_diagnose.line import Line
from kdoctor_diagnose.scan import Event, Scan

_WEIGHT = 1000
"""That nothing follows says more than the message."""
_TRACEBACK = "Traceback (most recent call last)"
_INTERRUPTED = re.compile("^KeyboardInterrupt$")


def hangs(found: Scan, known: KnownFailures) -> Iterator[Event]:
    """The failures of jobs that did nothing more, until something ended them from outside."""
    endings = [re.compile(text) for failure in known.failure_modes if failure.ends_a_hang for text in failure.messages]
    for number, tail in found.tails.items():
        place, line = _last(tail, endings)
        for failure in known.failure_modes:
            for match in filter(None, (re.search(pattern, line.text) for pattern in failure.at_end if line.text)):
                values = match.groupdict()
                yield Event(failure, _WEIGHT, number, place, line.text, values, line.rank, line.time, at_end=True)


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
