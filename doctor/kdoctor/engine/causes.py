"""Finds the causes of a run's failures: what follows from another failure is folded into it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from heapq import merge

from kdoctor.engine.report import Cause, Problem, Result
from kdoctor.model import Finding, Severity, Status
from kdoctor.text.subjects import gpu_index, name_subjects


def describe_problem(problem: Problem) -> str:
    """``GPU 0-7: held at 86 of 1980 MHz``; a few subjects that are not GPUs are listed."""
    return f"{name_subjects(problem.subjects)}: {problem.headline}"


@dataclass(kw_only=True, eq=False)
class _Found:
    """A finding that counts, with the one that explains it."""

    result: Result
    finding: Finding
    parent: _Found | None = None

    @property
    def root(self) -> _Found:
        """The finding that explains it, directly or through others; itself if none does."""
        found = self
        while found.parent is not None:  # no circle: `find_causes` gives nothing a parent that it explains
            found = found.parent
        return found


@dataclass(kw_only=True, eq=False)
class _Group:
    """Findings with one fix, and what they explain."""

    members: list[_Found]
    explained: list[_Found] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)


AboutOneThing = Callable[[str, str], bool]
"""Whether a problem of the first subject can be the reason for one of the second."""


def about_one_gpu(cause: str, effect: str) -> bool:
    """Subjects that are about two GPUs do not explain each other."""
    first, second = gpu_index(cause), gpu_index(effect)
    return first is None or second is None or first == second


class _Explaining:
    """Finds the findings that explain a result, without a look at those about other GPUs."""

    def __init__(self, by_check: Mapping[str, list[_Found]], related: AboutOneThing) -> None:
        self._by_check = by_check
        self._related = related
        self._known: dict[tuple[str, str], tuple[list[_Found], dict[int | None, list[tuple[int, _Found]]]]] = {}

    def __call__(self, checks: Iterable[str], check: str, subject: str) -> Iterator[_Found]:
        """The findings of these checks that explain a result of this check about this subject, in order."""
        index = gpu_index(subject)
        for name in checks:
            every, by_gpu = self._of(name, check)
            # A problem that is not about one GPU may explain any, and any may explain it.
            near = merge(by_gpu.get(None, ()), by_gpu.get(index, ()), key=lambda item: item[0])
            found = every if index is None else (other for _, other in near)
            yield from (other for other in found if self._related(other.finding.subject, subject))

    def _of(self, name: str, check: str) -> tuple[list[_Found], dict[int | None, list[tuple[int, _Found]]]]:
        """The findings of a check that may explain another check, and the same by GPU with their places."""
        if (name, check) not in self._known:
            patterns = {item.finding.explains for item in self._by_check.get(name, ())}
            fitting = {each for each in patterns if any(fnmatchcase(check, pattern) for pattern in each)}
            every = [item for item in self._by_check.get(name, ()) if item.finding.explains in fitting]
            by_gpu: dict[int | None, list[tuple[int, _Found]]] = {}
            for place, item in enumerate(every):
                by_gpu.setdefault(gpu_index(item.finding.subject), []).append((place, item))
            self._known[name, check] = every, by_gpu
        return self._known[name, check]


def find_causes(results: Sequence[Result], related: AboutOneThing = about_one_gpu) -> tuple[Cause, ...]:
    """The causes of all failures, in the order in which to solve them.

    Findings of a check with the same fix are one cause, also if its commands differ under one headline, and so are
    findings of several checks with the same commands. A finding whose ``explained_by`` names a failed check belongs to
    the cause of that failure. Errors come first. Causes that matter only after another one is solved come last. Of the
    others the one that explains most results comes first.

    Args:
        results: of the checks.
        related: whether one subject's problem can explain another's.
    """
    found = [
        _Found(result=result, finding=judged.finding)
        for result in results
        for judged in result.findings
        if judged.counts
    ]
    found.sort(key=lambda item: -item.result.severity.rank)
    by_check: dict[str, list[_Found]] = {}
    for item in found:
        by_check.setdefault(item.result.id, []).append(item)
    explaining = _Explaining(by_check, related)
    for item in found:
        candidates = explaining(item.finding.explained_by, item.result.id, item.finding.subject)
        item.parent = next((other for other in candidates if other.root is not item), None)
    groups = _group(item for item in found if item.root is item)
    of_root = {id(member): group for group in groups for member in group.members}
    for item in found:
        if item.root is not item:
            of_root[id(item.root)].explained.append(item)
    for result in results:
        _fold_missing(result, by_check, of_root, explaining)
    order = {result.id: number for number, result in enumerate(results)}
    causes = [_cause(group, by_check) for group in groups]
    return tuple(sorted(causes, key=lambda cause: _rank(cause, order)))


def _group(found: Iterable[_Found]) -> list[_Group]:
    """Each finding in the first group of the same cause."""
    groups: list[_Group] = []
    known: dict[Hashable, int] = {}
    """What makes findings one cause, to the place of the group."""
    for item in found:
        keys = list(_keys(item))
        place = min((known[key] for key in keys if key in known), default=None)
        if place is not None:
            groups[place].members.append(item)
        else:
            for key in keys:
                known.setdefault(key, len(groups))
            groups.append(_Group(members=[item]))
    return groups


def _keys(item: _Found) -> Iterator[Hashable]:
    """What a finding shares with those of the same cause: the commands, or the fix of one check."""
    finding, check = item.finding, item.result.id
    if finding.remedy.commands:
        yield finding.remedy.commands, finding.after
    yield check, finding.headline, finding.remedy.summary
    yield check, finding.remedy


def _fold_missing(
    result: Result, by_check: Mapping[str, list[_Found]], of_root: Mapping[int, _Group], explaining: _Explaining
) -> None:
    """Note a check that was skipped or could not be judged because of a cause."""
    if result.blocked_by and result.blocked_by in by_check:
        of_root[id(by_check[result.blocked_by][0].root)].blocked.append(result.id)
    elif result.status is Status.UNKNOWN and result.unjudged:
        explained = [next(explaining(item.explained_by, result.id, item.subject), None) for item in result.unjudged]
        if explained[0] and all(explained):
            of_root[id(explained[0].root)].unjudged.append(result.id)


def _cause(group: _Group, by_check: Mapping[str, list[_Found]]) -> Cause:
    first = group.members[0]
    checks = list(dict.fromkeys(member.result.id for member in group.members))
    severities = [item.result.severity for item in (*group.members, *group.explained)]
    explained = dict.fromkeys(item.result.id for item in group.explained if item.result.id not in checks)
    remedies = [member.finding.remedy for member in group.members]
    return Cause(
        checks=tuple(checks),
        severity=max(severities, key=lambda severity: severity.rank),
        problems=tuple(_problems(group.members)),
        fix=remedies[0].summary,
        commands=_once(command for remedy in remedies for command in remedy.commands),
        look=_once(command for remedy in remedies for command in remedy.look),
        rollback=first.finding.rollback,
        why=first.result.why,
        sources=first.result.sources,
        explains=tuple(explained),
        unjudged=tuple(group.unjudged),
        blocked=tuple(group.blocked),
        after=tuple(check for check in first.finding.after if check in by_check and check not in checks),
    )


def _problems(members: Iterable[_Found]) -> Iterator[Problem]:
    """Each headline once, with its findings."""
    by_headline: dict[tuple[str, str], list[Finding]] = {}
    for member in members:
        by_headline.setdefault((member.result.id, member.finding.headline), []).append(member.finding)
    for (check, headline), findings in by_headline.items():
        subjects = tuple(finding.subject for finding in findings)
        yield Problem(check=check, subjects=subjects, headline=headline, findings=tuple(findings))


def _once(commands: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(commands))


def _rank(cause: Cause, order: Mapping[str, int]) -> tuple[int, bool, int, int]:
    consequences = len(cause.explains) + len(cause.unjudged) + len(cause.blocked)
    return -cause.severity.rank, bool(cause.after), -consequences, order[cause.checks[0]]


def relevant(causes: Iterable[Cause], fail_on: Severity = Severity.ERROR) -> tuple[Cause, ...]:
    """The causes that the short report shows: all but those of severity info, unless they fail the run."""
    least = min(Severity.WARNING.rank, fail_on.rank)
    return tuple(cause for cause in causes if cause.severity.rank >= least)
