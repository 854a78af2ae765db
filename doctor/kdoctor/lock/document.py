"""The lock as a document: read strictly, written in one canonical form, sealed by a digest."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kdoctor.checklist.text import scalar
from kdoctor.commands.shell import quoted
from kdoctor.lock.values import problem
from kdoctor.text.instants import parse_instant
from kdoctor.yamldoc.nodes import Node
from kdoctor.yamldoc.problems import DocumentError, Problem
from kdoctor.yamldoc.source import YamlSourceError, read_yaml
from kdoctor.yamldoc.validation import StrictDocument, StrictPart, validate

_HEAD = """\
# What the last passing run of this checklist recorded, written by `kdoctor checklist record`.
# Do not edit: the digest would no longer match. Record the lock again instead.
"""
_CUT = "missing key 'digest': the file is incomplete or was edited"

Number = Annotated[float, Field(allow_inf_nan=False)]


class LockError(DocumentError):
    """A lock cannot be used."""


def lock_error(path: Path, message: str, hint: str | None = None) -> LockError:
    """The error of a lock that cannot be used as a whole."""
    return LockError(str(path), [Problem(line=None, column=None, message=message)], hint=hint)


class NewerLockError(LockError):
    """A newer kdoctor wrote the lock, so this one must not replace it."""


class Accepted(StrictPart):
    """A reviewed exception: a check that had not passed when the lock was recorded."""

    check: str
    reason: str


class Measure(StrictPart):
    """A measured number, and the range within which it counts as unchanged."""

    model_config = ConfigDict(populate_by_name=True, defer_build=True)

    value: Number
    low: Annotated[Number, Field(alias="from")]
    high: Annotated[Number, Field(alias="to")]

    def holds(self, value: float) -> bool:
        """Whether another measurement is within the range."""
        return self.low <= value <= self.high


class Lock(StrictDocument):
    """What a passing run of a checklist recorded."""

    schema_: Annotated[Literal["kdoctor/lock/v1"], Field(alias="schema")] = "kdoctor/lock/v1"
    checklist: str
    """The name of the checklist."""
    version: int
    """The version of the checklist."""
    expectations: str
    """Digest of the checklist's plain text: the expectations that the run met."""
    recorded: str
    """UTC, ISO 8601."""
    kdoctor: str
    """The version of kdoctor that recorded it."""
    identifiers: bool
    """Whether serial numbers and paths are recorded, too."""
    accepted: Annotated[tuple[Accepted, ...], Field(strict=False)] = ()
    facts: Mapping[str, Mapping[str, str]]
    """Section (``packages``, ``driver``, ...) to name to value."""
    measured: Mapping[str, Measure] = Field(default_factory=dict)
    """``smoke.baseline/mirrored/final-loss`` and the like."""

    def canonical(self) -> dict[str, Any]:
        """The document in order, without empty parts."""
        data = self.model_dump(by_alias=True)
        data["accepted"] = sorted(data["accepted"], key=lambda item: item["check"])
        data["facts"] = {name: dict(sorted(facts.items())) for name, facts in sorted(data["facts"].items()) if facts}
        data["measured"] = dict(sorted(data["measured"].items()))
        return data

    @property
    def digest(self) -> str:
        """Seals everything except the date."""
        data = self.canonical()
        del data["recorded"]
        data["accepted"] = sorted([item["check"], item["reason"]] for item in data["accepted"])
        text = json.dumps(data, sort_keys=True, ensure_ascii=True)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def text_of(lock: Lock) -> str:
    """The document: sorted, one fact a line. The same lock gives the same text, except for ``recorded``."""
    lines = [*_lines(lock.canonical()), f"digest: {scalar(lock.digest)}"]
    return _HEAD + "".join(f"{line}\n" for line in lines)


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        if key == "facts":
            yield "facts:" if value else "facts: {}"
            for section, facts in value.items():
                yield f"  {scalar(section)}:"
                yield from (f"    {scalar(name)}: {scalar(fact)}" for name, fact in facts.items())
        elif not isinstance(value, list | dict):
            yield f"{key}: {scalar(value)}"
        elif value:
            yield f"{key}:"
            if isinstance(value, dict):
                yield from (f"  {scalar(name)}: {scalar(entry)}" for name, entry in value.items())
            else:
                yield from (f"  - {scalar(entry)}" for entry in value)


def _unfit(root: Node) -> Iterator[Problem]:
    """Values that a passing run cannot have recorded. The digest does not show that: it holds no secret."""
    recorded = root.get("recorded")
    if recorded and recorded.value and not parse_instant(recorded.value):
        yield recorded.problem(f"{recorded.value!r:.60} is not a time")
    for section, facts in root.mapping("facts").items():
        for name, node in facts.value.items():
            message = problem(section, name, node.value)
            if message:
                yield node.problem(message, at_key=problem(section, name, "") == message)


def loads(content: bytes, shown: str) -> Lock:
    """Read a lock; ``shown`` names it in messages.

    Raises:
        LockError: it is not a lock, has a newer schema, is incomplete, or was changed since it was recorded.
    """

    def refuse(*problems: Problem) -> LockError:
        checklist = shown.removesuffix(".lock.yaml")
        file = f"{checklist}.yaml" if Path(f"{checklist}.yaml").is_file() else Path(checklist).name
        is_checklist = file != Path(checklist).name or f"\nchecklist: {file}\n".encode() in content
        command = f", or record it again: {quoted('kdoctor', 'checklist', 'record', file)}" if is_checklist else ""
        hint = f"Restore it from git{command}"
        return LockError(shown, problems, hint=hint)

    try:
        source = read_yaml(content, "lock")
    except YamlSourceError as error:
        cut = b"\ndigest:" not in content and b"\n<<<<<<<" not in content
        raise refuse(Problem(line=None, column=None, message=_CUT) if cut else error.problem) from error
    root = source.root
    if source.problems:
        raise refuse(*source.problems)
    other = Lock.other_schema(root, "lock")
    if other and (root.string("schema") or "").startswith("kdoctor/lock/v"):
        hint = "To check without the lock: kdoctor check --no-lock"
        raise NewerLockError(shown, [other], hint=hint)
    if other:
        raise refuse(other)
    digest = root.value.pop("digest", None)
    if digest is None:
        raise refuse(root.problem(_CUT))
    lock, problems = validate(Lock, root, "lock")
    if lock is None:
        raise refuse(*problems)
    unfit = list(_unfit(root))
    if unfit:
        raise refuse(*unfit)
    if digest.value != lock.digest:
        raise refuse(digest.problem("the lock was changed since it was recorded (its digest does not match)"))
    return lock
