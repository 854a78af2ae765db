"""Reads the reports and snapshots of many nodes. What cannot be used is named, and the rest is read."""

import datetime as dt
import json
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from kdoctor.errors import UsageError, about_missing_file
from kdoctor.inputs import exists, is_folder
from kdoctor.records import record
from kdoctor.text.instants import parse_instant
from kdoctor.text.sanitize import clean
from kdoctor_fleet.facts import FleetNode, UnreadReport
from kdoctor_fleet.names import is_valid
from kdoctor_fleet.node_report import MOST_BYTES, SentReport, Shared
from kdoctor_fleet.run_record import read_run, report_file

STDIN = "-"
MOST_STDIN_BYTES = 2**31
_REPORT, _SNAPSHOT = "report", "snapshot"
_SCHEMA = re.compile(rb'"schema"\s*:\s*"kdoctor/(?P<kind>[a-z-]{1,40})/v(?P<version>\d{1,6})"')
_BEGIN = re.compile(rb'^\{\s{1,8}"schema"\s{0,8}:\s{0,8}"kdoctor/report/', re.MULTILINE)
_DOCUMENT = re.compile(r"^\{", re.MULTILINE)
_NEXT_TO = re.compile(r"\s*\{")
LONGEST_REASON = 200

JudgeSnapshot = Callable[[bytes], SentReport]
"""Makes the report of a node from its snapshot.

Raises:
    UsageError: it is not a snapshot.
"""


class UnusableError(Exception):
    """A file is not the report of a node; the message says why."""


@dataclass(kw_only=True)
class Gathered:
    """What the files contain."""

    nodes: dict[str, FleetNode] = field(default_factory=dict)
    """By name of the node: its newest report."""
    unread: list[UnreadReport] = field(default_factory=list)
    replaced: dict[str, int] = field(default_factory=dict)
    """Nodes with several reports, and how many older ones were left out."""
    expected: dict[str, None] = field(default_factory=dict)
    """The nodes that ``kdoctor fleet run`` asked, if a folder is of such a run."""
    silent: dict[str, str] = field(default_factory=dict)
    """Those of them that did not report, with the reason."""


@record
class _Found:
    source: str
    content: bytes | UnusableError
    node: str = ""
    """The node that was asked for it; empty if the report itself names its node."""
    asked_at: str = ""


def gather(places: Iterable[str], judge_snapshot: JudgeSnapshot, stdin: BinaryIO) -> Gathered:
    """Read the files, the files of the folders, and the standard input for ``-``.

    Raises:
        UsageError: a place does not exist, or nothing is a usable report and no node was asked for one.
    """
    gathered, shared = Gathered(), Shared()
    places = tuple(places)
    for found in _contents(places, stdin, gathered):
        try:
            if isinstance(found.content, UnusableError):
                raise found.content
            sent = _parse(found.content, judge_snapshot)
            if found.node:
                _keep(gathered, shared.keep(_alone(sent), found.node, found.source, found.asked_at))
            else:
                _keep(gathered, shared.keep(sent, _name(sent, found.source), found.source))
        except UnusableError as error:
            reason = clean(" ".join(str(error).split()))[:LONGEST_REASON]
            if found.node:
                gathered.silent[found.node] = reason
            else:
                gathered.unread.append(UnreadReport(source=clean(found.source), reason=reason))
    if not gathered.nodes and not gathered.expected:
        first = f": {gathered.unread[0].source}: {gathered.unread[0].reason}" if gathered.unread else ""
        raise UsageError(
            f"no report of a node in {' '.join(places)}{first}",
            hint="Write one on each node: kdoctor check --output json=DIR/$(hostname).json",
        )
    return gathered


def _keep(gathered: Gathered, node: FleetNode) -> None:
    """Keep the newest report of each node; of two of the same time, one that did not pass."""
    known = gathered.nodes.get(node.name)
    if known is not None:
        gathered.replaced[node.name] = gathered.replaced.get(node.name, 0) + 1
    if known is None or _age(node) >= _age(known):
        gathered.nodes[node.name] = node


def _age(node: FleetNode) -> tuple[dt.datetime, bool]:
    """What is greater for a newer report. One whose time cannot be read, or is to come, is older than all others."""
    found, now = parse_instant(node.started_at), dt.datetime.now(dt.timezone.utc)
    known = found if found and found <= now else dt.datetime.min.replace(tzinfo=dt.timezone.utc)
    return known, node.verdict.value != "pass"


def _contents(places: Iterable[str], stdin: BinaryIO, gathered: Gathered) -> Iterator[_Found]:
    for place in places:
        if place == STDIN:
            yield from _documents(stdin)
            continue
        path = Path(place)
        if not exists(path):
            raise UsageError(f"{place}: no such file or folder{about_missing_file(path)}")
        run = read_run(path)
        if run is not None:
            gathered.expected |= dict.fromkeys(run.nodes)
            gathered.silent |= run.silent(path)
            for node in run.nodes:
                file = report_file(path, node)
                if file.exists():
                    yield _Found(source=str(file), content=_content(file), node=node, asked_at=run.asked_at(node))
            continue
        for file in _files(path):
            yield _Found(source=str(file), content=_content(file))


def _alone(sent: SentReport) -> SentReport:
    """A report without its place in the job: each node was asked alone, so each was the only one."""
    return sent.model_copy(update={"node": sent.node and replace(sent.node, rank=None, ranks=None)})


def _files(path: Path) -> Iterator[Path]:
    """The file itself, or the files below a folder in order, without hidden ones. Links to folders are not followed."""
    if not is_folder(path):
        yield path
        return
    for entry in sorted(path.iterdir()):
        if not entry.name.startswith(".") and not (entry.is_dir() and entry.is_symlink()):
            yield from _files(entry)


def _content(file: Path) -> bytes | UnusableError:
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode) and not str(file).startswith(("/dev/fd/", "/proc/")):
            return UnusableError("not a regular file")
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        return UnusableError(error.strerror or str(error))
    return UnusableError(f"larger than {MOST_BYTES >> 20} MiB") if len(content) > MOST_BYTES else content


def _documents(stdin: BinaryIO) -> Iterator[_Found]:
    """The reports in a stream. Each begins in the first column of a line or after another; other text is ignored."""
    content = stdin.read(MOST_STDIN_BYTES)
    text = content.decode("utf-8", "replace")
    decoder, end, number = json.JSONDecoder(), 0, 0
    complete = False
    while begin := (complete and _NEXT_TO.match(text, end)) or _DOCUMENT.search(text, end):
        start, number = begin.end() - 1, number + 1
        source = f"standard input, document {number}"
        try:
            _, end = decoder.raw_decode(text, start)
            complete = True
        except (ValueError, RecursionError) as error:
            end, complete = begin.end(), False
            yield _Found(source=source, content=UnusableError(f"invalid JSON: {error}"))
            continue
        document = text[start:end].encode()
        yield _Found(source=source, content=UnusableError("too large") if len(document) > MOST_BYTES else document)


def find_report(output: bytes) -> tuple[SentReport, bytes]:
    """The last report in what a node wrote, and its text. Other text before and after it is ignored.

    Raises:
        UnusableError: there is none, and why.
    """
    begins = [begin.start() for begin in _BEGIN.finditer(output)]
    if not begins:
        raise UnusableError("its output is not a report" if output.strip() else "it wrote no report")
    text = output[begins[-1] :]
    end = text.find(b"\n}")  # of the document, of which all other lines are indented
    content = text if end < 0 else text[: end + 2]
    return _parse(content, _refuse_snapshot), content


def _refuse_snapshot(_: bytes) -> SentReport:
    raise UsageError("a snapshot, expected a report")


def _parse(content: bytes, judge_snapshot: JudgeSnapshot) -> SentReport:
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        raise UnusableError("the file is empty")
    schema = _SCHEMA.search(content)
    if schema is None:
        raise UnusableError("not a report or snapshot of kdoctor")
    kind, version = schema["kind"].decode(), int(schema["version"])
    if kind not in (_REPORT, _SNAPSHOT):
        raise UnusableError(f"a document of kind {kind}, expected a report or a snapshot")
    if version > 1:
        raise UnusableError(f"schema version {version} is newer than 1, which this kdoctor reads: upgrade keras-doctor")
    try:
        return judge_snapshot(content) if kind == _SNAPSHOT else SentReport.model_validate_json(content)
    except UsageError as error:
        raise UnusableError(str(error)) from error
    except ValidationError as error:
        raise UnusableError(_first(error)) from error


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "json_invalid":
        truncated = " (the file is truncated)" if "EOF" in first["msg"] else ""
        return f"{first['msg']}{truncated}"
    return f"{where}: {first['msg']}"


def _name(sent: SentReport, source: str) -> str:
    """The node's name from its report; in reports of older kdoctors, the file's name without its ending."""
    if sent.node is None and source.startswith("standard input"):
        raise UnusableError("it does not name its node (a report of an older kdoctor)")
    name = sent.node.name if sent.node else Path(source).name.partition(".json")[0]
    if not is_valid(name):
        raise UnusableError(f"{name[:80]!r} is not a name of a node")
    return name
