"""A line of a log: its message, the process that wrote it, and the time."""

import datetime as dt
import json
import re
from dataclasses import dataclass

_RANKS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[(?:default)?(?P<rank>\d{1,4})\]:\s?",  # torchrun --tee, srun
        r"\[rank(?P<rank>\d{1,4})\]:\s?",  # torch
        # mpirun --tag-output, horovodrun with and without --prefix-timestamp
        r"(?:\w{3} \w{3} [ \d]\d [\d:]{8} \d{4})?\[(?:\d+,)?(?P<rank>\d{1,4})\]<std(?:out|err)>:\s?",
        r"\[\d+,mpirank:(?P<rank>\d{1,4}),[\w-]{1,60}\]<std(?:out|err)>:\s?",  # SageMaker
        r"(?P<rank>\d{1,4}): (?=\D|\d{4}-\d\d-\d\d)",  # srun --label
        r"(?P<rank>(?:workerpool\d|(?:chief|master|worker|ps)-replica)-\d{1,4})(?: |\t+)",  # Vertex AI
        r"\[pod/(?P<rank>[\w./-]{1,120})\] ",  # kubectl logs --prefix
        r"(?:\[?(?:rank|worker|task)[ =:_-]?(?P<rank>\d{1,4})\]?)(?:[:|] ?| - )",
        r"\[[Rr]ank[ =:_-]?(?P<rank>\d{1,4})\] ",
        r"(?P<rank>[A-Za-z][\w.-]{0,60}) +\| ",  # docker compose logs
        r"\((?P<rank>[\w.]{1,60} pid=\d+(?:, ip=[\d.]+)?)\) ",  # ray
    )
)
_CONTAINER = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] ")
"""What the runtime of Kubernetes writes before a line."""
_STAMP = re.compile(
    r"(?:[^\t]{1,60}\t){0,2}"
    r"(?:\[?\d{4}[-/]\d\d[-/]\d\d(?:T|, | )\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d| UTC)?\]?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{13})"
    r"\s(?:\| )?(?:\s*(?:\{[\w./-]{1,80}:\d+\} [A-Z]+ - |[\w.-]{1,64} [\w./-]{1,64}\[\d+\]: ))?"
)
"""What the journal, ``ts``, GitHub Actions, Airflow, Vertex AI or CloudWatch write before a line, also in columns.

The time that TensorFlow writes itself ends with a colon."""
_MESSAGES = ("log", "message", "textPayload", "msg", "text")
"""The names under which a line in JSON has its message, also within ``jsonPayload``."""
_NCCL = re.compile(r"(?P<host>[\w.-]{1,64}):\d+:\d+ \[(?P<gpu>\d+)\] ")
_TIME = re.compile(
    r"(?<!\d)(?P<day>\d{4}[-/]\d\d[-/]\d\d)[T ](?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,9}))?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_GLOG = re.compile(r"\b[IWEF](?P<micros>\d{16,20})\b|[IWEF]0000 00:00:(?P<unix>\d{10})\.(?P<part>\d+)")


@dataclass(frozen=True)
class Line:
    """A line without what launchers write before it."""

    text: str
    rank: str | None = None
    time: float | None = None
    """Seconds since 1970. A time without time zone counts as UTC."""


def split(raw: str) -> Line:
    """The parts of a line."""
    time = time_of(raw)
    text = _without_stamp(_message(raw) if raw.startswith("{") else raw)
    for pattern in _RANKS:
        found = pattern.match(text)
        if found:
            return Line(_without_stamp(text[found.end() :]).rstrip(), found["rank"], time)
    found = _NCCL.match(text)
    return Line(text.rstrip(), f"{found['host']} GPU {found['gpu']}" if found else None, time)


def _without_stamp(text: str) -> str:
    found = _CONTAINER.match(text) or _STAMP.match(text)
    return text[found.end() :] if found else text


def _message(raw: str) -> str:
    """The message of a line in JSON, else the line."""
    texts = map(fields_of(raw).get, _MESSAGES)
    return next((text for text in texts if isinstance(text, str)), raw)


def fields_of(raw: str) -> dict[str, object]:
    """The fields of a line in JSON."""
    try:
        entry = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    entry = entry.get("jsonPayload", entry) if isinstance(entry, dict) else {}
    return entry if isinstance(entry, dict) else {}


def time_of(text: str) -> float | None:
    """The first date and time in a text, or None."""
    found = _GLOG.search(text)
    if found and found["unix"]:
        return float(f"{found['unix']}.{found['part']}")
    found = _TIME.search(text)
    if not found:
        return None
    zone = (found["zone"] or "Z").replace("Z", "+00:00")
    try:
        moment = dt.datetime.fromisoformat(f"{found['day'].replace('/', '-')}T{found['clock']}{zone[:3]}:{zone[-2:]}")
    except ValueError:
        return None
    return moment.timestamp() + float(f"0.{found['part'] or 0}")
