"""What a log has that the log of a run that worked has not: kinds of lines, step times and losses.

Lines are alike that differ by numbers, addresses, paths, times and ranks only. What differs in the order of lines, in
numbers that are not a step time or a loss, is not seen.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from statistics import median

from kdoctor.text.sanitize import clean
from kdoctor.text.secrets import mask
from kdoctor.text.wrap import shorten
from kdoctor_diagnose.inputs import Log, PartlyReadError
from kdoctor_diagnose.line import split
from kdoctor_diagnose.model import Against, Place
from kdoctor_diagnose.tracebacks import LOG_PREFIX, TITLE

_MOST_KINDS = 100_000
_SHOWN = 8
_LONGEST, _QUOTED = 4000, 300
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{12,}\b|\d+(?:[.:,]\d+)*(?:e[+-]?\d+)?")
_PATHS = re.compile(r"(?:~|\b[A-Z]:)?(?:[/\\][\w.@+-]+){2,}")
_STEP = re.compile(r"(?P<value>\d+(?:\.\d+)?)(?P<unit>us|ms|s)/step")
_LOSS = re.compile(r"\bloss\W{1,3}(?P<value>-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|inf))\b", re.IGNORECASE)
_VERSION = re.compile(
    r"\b(?P<name>[A-Za-z][\w-]{1,40})(?:==|[ :=]{1,2})v?(?P<version>\d+\.\d+\.\d+(?![\d.])[\w+]{0,20})(?=[\s,;\])]|$)"
)
"""A package, or another program, and its version."""
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_PROBLEM = re.compile(
    r"^[WEF]\d{4} |\bW(?:ARN(?:ING)?)?\b|\b[EF] \S+\.cc:|(?i:error|warn|fail|exception|traceback|fatal)"
)


class _Run:
    """The lines of one run."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self.kinds: dict[str, Place] = {}
        self.problems: set[str] = set()
        """The kinds that are a warning or an error."""
        self.versions: dict[str, str] = {}
        self.steps: list[float] = []
        self._in_frames = False
        self.loss: float | None = None
        for log in logs:
            for number, raw in enumerate(_lines(log), 1):
                self._read(log.name, number, raw)

    def _read(self, name: str, number: int, raw: str) -> None:
        if found := _LOSS.search(raw):
            self.loss = float(found["value"])
        if found := _STEP.search(raw):
            self.steps.append(float(found["value"]) * _UNITS[found["unit"]])
            return
        line = split(clean(raw))
        self._in_frames = TITLE in line.text or (self._in_frames and line.text[:1].isspace())
        if self._in_frames:
            return
        for found in _VERSION.finditer(line.text[:_LONGEST]):
            self.versions.setdefault(found["name"].lower(), found["version"])
        kind = kind_of(line.text)
        if kind and kind not in self.kinds and len(self.kinds) < _MOST_KINDS:
            text = shorten(" ".join(LOG_PREFIX.sub("", mask(line.text)).split()), _QUOTED)
            self.problems |= {kind} if _PROBLEM.search(line.text) else set()
            self.kinds[kind] = Place(log=name, line=number, rank=line.rank, text=text)


def kind_of(text: str) -> str:
    """The line without what differs from run to run."""
    return " ".join(_NUMBERS.sub("#", _PATHS.sub("/", text)).split())


def compare(logs: Sequence[Log], good: Sequence[Log]) -> Against:
    """What is new in a run since one that worked, by the logs of both."""
    now, before = _Run(logs), _Run(good)
    then = before.versions
    new = {kind: place for kind, place in now.kinds.items() if kind not in before.kinds}
    return Against(
        good=[log.name for log in good],
        kinds=len(new),
        new=list(new.values())[:_SHOWN],
        missing=[place for kind, place in before.kinds.items() if kind not in now.kinds][-_SHOWN:],
        versions={
            name: (then[name], version) for name, version in now.versions.items() if then.get(name, version) != version
        },
        problem=next((place for kind, place in new.items() if kind in now.problems), None),
        step_s=(median(before.steps or [0]) or None, median(now.steps or [0]) or None),
        loss=(before.loss, now.loss),
    )


def _lines(log: Log) -> Iterator[str]:
    rest = b""
    with suppress(PartlyReadError):
        for block in log.blocks():
            *whole, rest = (rest + block).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            yield from (line[:_LONGEST].decode("utf-8", "replace") for line in whole)
            rest = rest[-_LONGEST:]
    if rest:
        yield rest.decode("utf-8", "replace")
