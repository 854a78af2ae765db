"""Orders what was found in logs into causes and consequences. It is pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from kdoctor.failures.known import Certainty, KnownFailure, KnownFailures
from kdoctor.failures.tables import described
from kdoctor.text.lists import grouped
from kdoctor_diagnose.endings import END, INFORMS, WARNED, epochs_after, hangs, has_ended, last_words, words_after
from kdoctor_diagnose.found import FATAL, ErrorLine, Event, Scan
from kdoctor_diagnose.recogniser import EXCEPTION
from kdoctor_diagnose.tracebacks import EXIT_CODE, TITLE

_MILD = ("silent", "registration", "slow", "harmless")
_CAN_END = frozenset({"registration", "silent", "slow"})
_CERTAINTIES: tuple[Certainty, ...] = ("possible", "likely", "certain")
_FAILED = 5
"""Score from which a line is a failure and not a warning."""
_SHOWN = 6
"""Lines that are shown where nothing is recognised."""
NEAR = 60
"""Lines between a traceback and the message that explains it."""
_LAST = 2
_VAGUE = re.compile(rf"{INFORMS.pattern}|^\s*(?:-+> ?)?\d+ {{2,}}\S")
"""Lines that need not be about the failure: by their level, or as code around a line that IPython shows."""
_SAID = re.compile(r"(?<=: ).{10,60}")
"""The beginning of a message, which can be recognised in another one."""
_GENERIC = re.compile(
    r"Graph execution error|root error\(s\) found|Exception encountered when calling|The above exception was the direct"
    r"|^(?:subprocess\.)?CalledProcessError|^SystemExit|ChildFailedError"
    r"|terminate called after throwing(?!.* what\(\): )"
    r"|Non-OK-status: (?!.* status: )|^[\w.]*CancelledError$|^[\w.]+(?:Error|Exception):$"
)
"""Errors that only wrap another one."""

_NO_DEVICE = re.compile(r"Unable to initialize backend|no supported devices found|\b[Nn]o (?:\w+ ){0,2}GPUs?\b")
"""An exception that only says that there are no GPUs."""


@dataclass(eq=False)
class Group:
    """The lines of one failure."""

    failure: KnownFailure
    first: Event
    events: list[Event]
    reasons: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    alternatives: list[str] = field(default_factory=list)
    followers: list[Group] = field(default_factory=list)
    doubts: int = 0
    is_raised: bool = False
    """Whether it is the exception of a traceback."""

    @property
    def fatal(self) -> bool:
        """Whether it ends a job."""
        return self.failure.kind in FATAL or self.is_raised

    @property
    def certainty(self) -> Certainty:
        """How sure it is that this is the cause."""
        place = _CERTAINTIES.index(self.failure.certainty) - self.doubts
        return _CERTAINTIES[max(0, min(place, len(_CERTAINTIES) - 1))]

    @property
    def count(self) -> int:
        """Lines with its message."""
        return sum(event.count for event in self.events)


_Order = Callable[[Event | ErrorLine], tuple[bool, float, int, int]]


@dataclass
class Verdict:
    """Causes, what else was seen, and what was ruled out."""

    causes: list[Group]
    also: list[Group]
    ruled_out: dict[str, str]
    unknown: list[ErrorLine]
    """The lines that look like a failure which is not known, the first failure first."""


def conclude(found: Scan, known: KnownFailures) -> Verdict:
    """The causes among what was found."""
    events = [*found.events, *hangs(found, known)]
    ruled_out: dict[str, str] = {}
    possible = [event for event in events if not _is_ruled_out(event, found, ruled_out)]
    groups = _groups(possible, found)
    order = _order(found)
    ruled_out |= {group.failure.id: "training went on" for group in groups if _went_on(group, found)}
    groups = [group for group in groups if not _went_on(group, found)]
    groups.sort(key=lambda group: (group.doubts > 0 and bool(group.against), order(group.first)))
    roots = _fold(groups, order)
    passed = [group for group in roots if _passed(group, found)]
    unknown = _unknown(found, [group for group in groups if group not in passed])
    fatal = [group for group in roots if group.fatal and group not in passed]
    mild = [group for group in roots if not group.fatal and group not in passed]
    failed = next((line for line in unknown if line.score > _FAILED), None)
    if failed and not fatal and all(TITLE in line.text for line in unknown):
        # The log ends before the exception. The nearest to a cause is a loss that was not finite, or the message of
        # an operation that ended, which TensorFlow writes as information.
        silent = [group for group in mild if group.failure.kind == "silent"]
        told = _groups([event for event in possible if not event.failure.harmless], found)
        aborted = [group for group in told if group.fatal and not _passed(group, found)]
        mild, fatal = [group for group in mild if group not in silent], silent or aborted
    lost = [group for group in mild if failed and _is_lost_device(group, failed)]
    if lost and all(group.failure.follows for group in fatal):
        lost[0].followers += fatal
        mild, fatal = [group for group in mild if group not in lost], lost
    if failed and not fatal:
        return Verdict([], [*mild, *passed], ruled_out, unknown)
    follows = bool(fatal) and (fatal[0].failure.follows or fatal[0].first.at_end)
    # A line without a traceback, after which the training made progress, is not what the end followed.
    ends = (line for line in unknown if line.is_raised or line.line >= found.progress.get(line.log, 0))
    earliest = min((order(line) for line in ends if line.score > _FAILED), default=None)
    is_raised_there = fatal and unknown and TITLE in fatal[0].first.text and unknown[0].score == EXCEPTION
    if follows and earliest and (earliest < order(fatal[0].first) or is_raised_there):
        return Verdict([], [*fatal, *mild, *passed], ruled_out, unknown)
    others = [line for line in unknown if line.is_raised and _is_of_another(line, fatal, found)]
    if others:
        return Verdict([], [*fatal, *mild, *passed], ruled_out, others)
    mild.sort(key=lambda group: _MILD.index(group.failure.kind))
    wrong = _wrong_with(fatal[0], mild, passed) if fatal else []
    if wrong:
        # What ended the job is not sure, but this is wrong with it.
        wrong[0].followers += fatal
        wrong[0].against.append("the log does not show that it ended the job")
        wrong[0].doubts += 1
        return Verdict(wrong, [group for group in (*mild, *passed) if group not in wrong], ruled_out, [])
    if not fatal and all(_is_usual(group, found) for group in mild):
        mild, passed = [], [*mild, *passed]
    if fatal or mild:
        if fatal:
            _doubt(fatal[0], found)
        return Verdict(fatal or mild, [*(mild if fatal else []), *passed], ruled_out, [])
    # A line that may be a mere warning is the failure only if the log ends with it.
    return Verdict([], passed, ruled_out, [line for line in unknown if found.lines[line.log] - line.line < END])


def _doubt(cause: Group, found: Scan) -> None:
    """Of several exceptions of a process, the last one ended it, unless another one led to it."""
    at = cause.events[-1]
    first = ErrorLine(EXCEPTION, at.log, at.last, at.text, at.rank, at.time)
    later = (error for error in _raised_after(cause, found) if error.line > at.last + NEAR)
    own = next((error for error in later if not (_GENERIC.search(error.text) or _repeats(error, first))), None)
    if own and not _is_of_many(at, found):
        cause.against.append(f"later the program raised {own.text!r:.160}")
        cause.doubts += 1


def _raised_after(group: Group, found: Scan) -> list[ErrorLine]:
    """The exceptions that the process of a failure raised later, and not because of another one."""
    at, aside = group.events[-1], found.threads | found.chained
    raised = (error for error in found.errors if error.is_raised and (error.log, error.line) not in aside)
    return [error for error in raised if (error.log, error.rank) == (at.log, at.rank) and error.line > at.last]


def _is_of_another(error: ErrorLine, fatal: list[Group], found: Scan) -> bool:
    """Whether it is of the process that failed, where all the failures only say that another one did."""
    processes = {(event.log, event.rank) for group in fatal for event in group.events}
    is_first = (error.log, error.line) not in found.chained and (error.log, error.rank) not in processes
    return is_first and all(group.failure.in_another for group in fatal)


def _is_lost_device(group: Group, error: ErrorLine) -> bool:
    """Whether lines say why there are no GPUs, before an exception that only says that there are none."""
    is_said = _NO_DEVICE.search(error.text) and (group.first.log, group.first.rank) == (error.log, error.rank)
    return bool(is_said) and group.failure.kind == "registration" and not group.failure.without_gpus


def _wrong_with(end: Group, mild: list[Group], passed: list[Group]) -> list[Group]:
    """What can have ended a job that was ended from outside: that it was slow, or what stops nothing by itself."""
    slow = [group for group in (*mild, *passed) if group.failure.kind in ("registration", "slow")]
    if slow and end.failure.ends_a_slow_job:
        return slow
    is_echo = end.failure.follows and end.failure.certainty == _CERTAINTIES[0]
    return [group for group in mild if is_echo and group.failure.kind in _CAN_END]


def _is_usual(group: Group, found: Scan) -> bool:
    """Whether each run on a machine without GPUs has it, and nothing says that GPUs were wanted."""
    wanted = group.failure.id in found.clues or any(item.failure.kind != "registration" for item in group.followers)
    return group.failure.without_gpus and not wanted


def _went_on(group: Group, found: Scan) -> bool:
    """Whether a job that waited then trained on. Progress can be written late, so a certain end stays one."""
    is_wait = group.failure.kind == "hang" and group.failure.certainty != _CERTAINTIES[-1]
    return is_wait and all(event.last < found.progress.get(event.log, 0) and not event.at_end for event in group.events)


def _passed(group: Group, found: Scan) -> bool:
    """Whether a job trained after a failure that only left out its GPUs, or to its end after one that ends jobs.

    Of several processes in a log, one can go on for a while after another one has ended.
    """
    if group.failure.kind in ("registration", "slow"):
        log = group.first.log
        return group.first.line < max(found.progress.get(log, 0), found.passed.get(log, 0))
    if group.failure.kind != "crash" or group.followers or _is_of_many(group.first, found):
        return False
    at, raised = group.events[-1], _raised_after(group, found)
    (epochs, is_last), is_well = epochs_after(found, at), has_ended(found)
    if WARNED.search(at.text) and (raised or epochs > 1 or (is_well and at.last < found.passed.get(at.log, 0))):
        return True  # a Python warning did not end what raised an exception later, or trained on
    if is_last and is_well and group.certainty == _CERTAINTIES[0] and group.failure.ends_a_hang:
        return words_after(found, at) is not None  # a pool of processes that did its work is ended so
    if raised and not group.failure.follows and epochs > 1:
        return True  # it was caught, and what the process raised after further epochs ended it
    return all(event.last < found.passed.get(event.log, 0) and epochs_after(found, event)[1] for event in group.events)


def _is_of_many(item: Event | ErrorLine, found: Scan) -> bool:
    """Whether it is not known which of several processes wrote a line."""
    return item.log in found.together and item.rank is None


def _may_end(item: ErrorLine, found: Scan) -> bool:
    """Whether an exception may have ended its process, although another one went on in the same log."""
    tail = found.tails.get(item.log, [])
    is_last = bool(tail) and all(number <= item.line for number, line in tail if line.rank == item.rank)
    return is_last if item.rank is not None else _is_of_many(item, found)


def _is_ruled_out(event: Event, found: Scan, ruled_out: dict[str, str]) -> bool:
    failure = event.failure
    row = described(failure, event.values.get("code"))
    if row is not None and row.harmless:
        return True
    if failure.clue_needed and failure.id not in found.clues:
        return True
    if _is_denied(event, found) and not _is_explained(found.denied[failure.id], found):
        ruled_out[failure.id] = f"contradicted by the line {found.denied[failure.id]!r:.160}"
        return True
    if failure.since and event.time and event.time < datetime.fromisoformat(f"{failure.since}T00:00+00:00").timestamp():
        ruled_out[failure.id] = f"the log is from before {failure.since}"
        return True
    for package, versions in failure.needs.items():
        version = found.versions.get(package)
        if version and not fits(version, versions):
            ruled_out[failure.id] = f"needs {package} {versions}; the log has {version}"
            return True
    return False


def _is_denied(event: Event, found: Scan) -> bool:
    """Whether a line rules a failure out. A job that was stuck, went on and is stuck again did not go on."""
    if event.failure.id not in found.denied:
        return False
    log, line = found.denied_last[event.failure.id]
    return event.failure.kind != "hang" or event.log != log or event.last < line


def _is_explained(text: str, found: Scan) -> bool:
    """Whether a line only shows what followed from another failure, as a kill does from a time limit."""
    names = {event.failure.id for event in found.events if event.text == text}
    certain = [event.failure for event in found.events if event.failure.certainty == _CERTAINTIES[-1]]
    return any(names & set(failure.explains) for failure in certain)


def fits(version: str, versions: str) -> bool:
    """Whether a version is among some, as PEP 440 says. A version that is not one might be."""
    try:
        return SpecifierSet(versions).contains(Version(version), prereleases=True)
    except ValueError:  # not a version, or one of thousands of digits
        return True


def _most_specific(events: list[Event], found: Scan) -> list[tuple[Event, list[str]]]:
    """Of the failures of a line the one with a clue or else the longest message, and the others of equal weight."""
    chosen = []
    for alike in grouped(((event.log, event.line, event.text), event) for event in events).values():
        if any(event.failure.harmless for event in alike):
            continue
        explained = {name for event in alike for name in event.failure.explains}
        alike.sort(
            key=lambda event: (
                event.failure.id not in found.clues,
                event.failure.id in explained,
                bool(event.failure.table),
                -event.weight,
                bool(event.failure.needs),
            )
        )
        best = alike[0]
        names = [event.failure.id for event in alike[1:] if event.weight == best.weight]
        others = [name for name in names if name not in best.failure.explains]
        chosen.append((best, [] if best.failure.id in found.clues else others))
    return chosen


def _groups(events: list[Event], found: Scan) -> list[Group]:
    groups: dict[str, Group] = {}
    for event, others in _most_specific(events, found):
        group = groups.setdefault(event.name, Group(event.failure, event, [], alternatives=others))
        group.events.append(event)
        group.alternatives = [name for name in group.alternatives if name in others]  # or another line says which
    for group in groups.values():
        _weigh(group, found)
    return list(groups.values())


def _weigh(group: Group, found: Scan) -> None:
    failure, first = group.failure, group.first
    places = {(event.log, event.line) for event in group.events}
    group.is_raised = any(error.is_raised and (error.log, error.line) in places for error in found.errors)
    if failure.id in found.clues:
        group.reasons.append("other lines of the log name the same cause")
        group.doubts -= not failure.clue_needed
    for package, versions in failure.needs.items():
        version = found.versions.get(package)
        if version:
            group.reasons.append(f"{package} {version} is affected ({versions})")
        else:
            group.against.append(f"the log has no version of {package}; {versions} is affected")
            group.doubts += group.certainty == _CERTAINTIES[-1]
    if group.alternatives:
        group.doubts += 1
    progress = found.progress.get(first.log, 0)
    if group.fatal and not failure.follows and progress > max(event.last for event in group.events):
        group.against.append(f"training went on until line {progress}")
        group.doubts += 1
    if failure.follows:
        group.doubts += 1
        group.reasons += [f"the line before it is {first.before!r:.160}"] if first.before else []
    if group.certainty == _CERTAINTIES[-1] and all(_VAGUE.search(event.text) for event in group.events):
        group.doubts += 1
    went_on = failure.kind == "registration" and not any(_is_lost_device(group, error) for error in found.errors)
    last = words_after(found, group.events[-1]) if went_on else None
    if failure.without_gpus and not group.is_raised:
        group.against.append("on a machine without GPUs, each run has this line")
        group.doubts += 2
    elif last:
        group.against.append(f"the program went on, and the log ends with {last!r:.160}")
        group.doubts += 1


def _order(found: Scan) -> _Order:
    """By time if every failure has one, and by place otherwise."""
    by_time = len(found.names) > 1 and all(event.time is not None for event in found.events)
    # A job that waits may wait for one that failed later.
    return lambda item: (getattr(item, "at_end", False), item.time or 0.0 if by_time else 0.0, item.log, item.line)


def _fold(groups: list[Group], order: _Order) -> list[Group]:
    """The groups that no other explains, with what they explain, in order."""
    explained: dict[int, Group] = {}
    for cause in groups:
        for group in groups:
            if group.failure.id in cause.failure.explains and _root(cause, explained) is not group:
                explained.setdefault(id(group), cause)
    roots = [group for group in groups if id(group) not in explained]
    fatal = [group for group in roots if group.fatal]
    surest = max(fatal, key=lambda group: _CERTAINTIES.index(group.failure.certainty), default=None)
    first = next((group for group in fatal if not group.failure.follows), surest)
    if first and first.failure.kind == "crash" and fatal[0] is surest and surest.failure.ends_a_hang:
        first = surest  # the scheduler ended the job, and only then something failed
    for group in fatal:
        # What came before it and is contradicted is not its consequence.
        is_before = first is not None and group.against and order(group.first) < order(first.first)
        if first is not None and group is not first and (group.failure.follows or not is_before):
            explained[id(group)] = first
    for group in groups:
        root = _root(group, explained)
        if root is not group:
            root.followers.append(group)
    return [group for group in groups if id(group) not in explained]


def _root(group: Group, explained: Mapping[int, Group]) -> Group:
    """What explains a group in the end. There are no cycles, since a root is never explained by its consequences."""
    while id(group) in explained:
        group = explained[id(group)]
    return group


def _repeats(later: ErrorLine, first: ErrorLine) -> bool:
    """Whether an exception passes on what an earlier line of the process said, or is what that line was about."""
    is_other = later.is_raised and (later.log, later.rank) == (first.log, first.rank) and later.text != first.text
    pairs = ((_SAID.search(later.text), first.text), (_SAID.search(first.text), later.text))
    return is_other and any(said[0] in other for said, other in pairs if said)


def _unknown(found: Scan, groups: list[Group]) -> list[ErrorLine]:
    """The lines that look like a failure and that no recognised message explains."""
    # A traceback comes before the message that explains it. The cause comes before a mere consequence.
    known = [
        (event.log, event.rank, event.line if group.failure.follows else event.line - NEAR, event.line + NEAR)
        for group in groups
        for event in group.events
        if group.fatal
    ]
    order = _order(found)
    last = [*last_words(found)]
    lines = [
        error
        for error in sorted([*found.errors, *last], key=order)
        if error.score
        and (error.line >= found.passed.get(error.log, 0) or (error.score == EXCEPTION and _may_end(error, found)))
        and (error.score >= _FAILED or error.line >= found.progress.get(error.log, 0))
        and not any((error.log, error.rank) == (*at,) and start < error.line < end for *at, start, end in known)
    ]
    if not lines and not groups and not has_ended(found):  # nothing else says why the process did not go on
        lines = [error for error in found.errors if (error.log, error.line) in found.threads]
    exits = [error for error in lines if EXIT_CODE.search(error.text)]
    said = [error for error in lines if not (_GENERIC.search(error.text) or error in exits)]
    lines = said if said or known else lines
    if any(error.score == EXCEPTION for error in lines):
        lines = [error for error in lines if error.score == EXCEPTION or TITLE not in error.text]
    if lines:
        later = sorted(found.errors, key=order, reverse=True)  # the last one says most about it
        lines = [*(error for error in later if _repeats(error, lines[0])), *lines]
    best = max((error.score for error in lines), default=0)
    first = [error for error in lines if error.score >= min(best, _FAILED + 1)]
    rest = [error for error in lines if error not in first]
    shown = [*first, *sorted(rest, key=lambda error: -error.score)]
    if best <= _FAILED - (1 if has_ended(found) else 2) and not exits:
        # Of the level error: the failure only if nothing follows.
        shown = [error for error in shown if error in last or found.lines[error.log] - error.line < _LAST]
    unique: dict[str, ErrorLine] = {}
    for error in (*shown, *exits):
        unique.setdefault(error.text, error)
    return [*unique.values()][:_SHOWN]
