"""Judges the reports of many nodes as one fleet, and builds its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from kdoctor.engine.categories import categories
from kdoctor.engine.causes import AboutOneThing, find_causes, relevant
from kdoctor.engine.fixes import plan_fixes
from kdoctor.engine.judge import judge, unused_waivers
from kdoctor.engine.report import Category, Cause, Conclusion, FixStep, JudgedFinding, Mark, Report, Result
from kdoctor.model import Severity, Status
from kdoctor.run.plan import Plan
from kdoctor.text.lists import counted
from kdoctor_fleet.exclusion import Engine, Exclusion, exclusions
from kdoctor_fleet.facts import Fleet, PairTests
from kdoctor_fleet.names import expand, fold
from kdoctor_fleet.read import Gathered
from kdoctor_fleet.record import NodeRecord
from kdoctor_fleet.report import FleetReport, NodeNote, NodeProblem, NodeState
from kdoctor_fleet.results import Tally, merge_results
from kdoctor_fleet.scope import scope_of
from kdoctor_fleet.verdict import conclude_fleet, needed_nodes

_NONE = Tally(passed=0, failed=0)
_LAUNCHED: Mapping[str, Engine] = {"slurm": "slurm", "kubernetes": "kubernetes"}


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """Which nodes should be there, and how many must pass."""

    names: tuple[str, ...] = ()
    """Empty if nothing says which."""
    min_healthy: str | None = None
    engine: Engine | None = None
    """The engine whose words to use; that of the nodes' launcher if None."""
    again: str = ""
    """The command that judges the reports again without asking the nodes; empty if that of the plan does."""


def merge(  # noqa: PLR0913 - what is known about the fleet
    gathered: Gathered,
    expectation: Expectation,
    plan: Plan,
    merged_at: str,
    duration_s: float,
    *,
    pairs: PairTests | None = None,
) -> FleetReport:
    """The report of the fleet.

    Args:
        gathered: what the files contain.
        expectation: which nodes should be there.
        plan: the checks over all nodes, from the fleet's checklist.
        merged_at: now, UTC, ISO 8601.
        duration_s: how long it took to read the files.
        pairs: what trainings over several nodes showed.
    """
    records = [gathered.records[name] for name in sorted(gathered.records)]
    folded = _folding()
    fleet = Fleet(
        nodes=tuple(record.facts for record in records),
        expected=expectation.names,
        reasons=gathered.silent,
        unread=tuple(gathered.unread),
        pairs=pairs,
        merged_at=merged_at,
        fold=folded,
    )
    own, tallies = merge_results(records, folded)
    results = (*_of_equal_nodes(judge(plan.checks, {Fleet: fleet}, plan.rules)), *own)
    reported = folded(gathered.records)
    alike = not any(result.findings for result in results if result.id == "cluster.tf-config")
    found = find_causes(results, _related(gathered.records))
    causes = tuple(_with_scope(cause, tallies, reported, alike=alike) for cause in found)
    nodes = tuple(_notes(records, fleet, results, causes))
    needed = needed_nodes(expectation.min_healthy, len(fleet.expected) or len(records))
    may_be_nodes = 0 if fleet.expected or expectation.min_healthy else len(fleet.unread)
    verdict = conclude_fleet(
        nodes,
        needed,
        causes=causes,
        unread=may_be_nodes,
        undecided=tuple(_undecided(results, fleet)),
    )
    shown = FleetReport(
        report=Report(
            verdict=verdict,
            target=_describe(nodes, folded),
            checklist=plan.checklist.title,
            results=results,
            categories=tuple(_categories(categories(results, causes), records)),
            causes=causes,
            command=plan.command,
            details=expectation.again and f"{expectation.again} -v",
            unused_waivers=unused_waivers(results, plan.rules.waivers),
            duration_s=duration_s,
            started_at=merged_at,
            fail_on=plan.rules.fail_on,
        ),
        nodes=nodes,
        needed=needed,
        fleet=fleet,
        engine=expectation.engine or _engine(records),
    )
    return _with_plan(shown, plan.command, expectation)


def _describe(nodes: Sequence[NodeNote], folded: Callable[[Iterable[str]], str]) -> str:
    """``64 nodes (61 passed, 2 failed, 1 silent): node[001-064]``."""
    states = Counter(node.state for node in nodes)
    numbers = ", ".join(f"{states[state]} {state.value}" for state in NodeState if states[state])
    return f"{counted(len(nodes), 'node')} ({numbers}): {folded(node.name for node in nodes)}"


class _folding:  # noqa: N801 - used as a function
    """Folds sets of nodes; many checks name the same set."""

    def __init__(self) -> None:
        self._fold = lru_cache(maxsize=4096)(fold)

    def __call__(self, names: Iterable[str]) -> str:
        return self._fold(tuple(names))


def _of_equal_nodes(results: Sequence[Result]) -> Iterator[Result]:
    """A difference explains another one only if exactly the same nodes have it."""
    subjects = {result.id: {judged.finding.subject for judged in result.findings} for result in results}

    def explained(judged: JudgedFinding) -> JudgedFinding:
        finding = judged.finding
        kept = tuple(check for check in finding.explained_by if finding.subject in subjects.get(check, ()))
        return replace(judged, finding=replace(finding, explained_by=kept))

    for result in results:
        yield replace(result, findings=tuple(map(explained, result.findings)))


def _related(known: Mapping[str, object]) -> AboutOneThing:
    """A problem explains others of the same nodes only."""

    @lru_cache(maxsize=4096)
    def named(subject: str) -> frozenset[str]:
        return frozenset(nodes_of(subject, known))

    return lambda cause, effect: named(cause) >= named(effect)


def _with_scope(cause: Cause, tallies: Mapping[str, Tally], reported: str, *, alike: bool) -> Cause:
    """The cause with whose problem it is. If a comparison names all nodes, no node is at fault and none is drained."""
    if cause.checks[0].startswith("cluster.") and any(reported in problem.subjects for problem in cause.problems):
        return replace(cause, scope="job")
    tally = tallies.get(cause.checks[0], _NONE)
    return replace(cause, scope=scope_of(cause.checks[0], passed=tally.passed, failed=tally.failed, alike=alike))


def _notes(
    records: Sequence[NodeRecord], fleet: Fleet, results: Iterable[Result], causes: Iterable[Cause]
) -> Iterator[NodeNote]:
    """Every node with its state: what its own checks say, and what the comparison adds."""
    expected, by_name = set(fleet.expected), {record.name: record for record in records}
    problems = _problems(causes, by_name)
    unknown = _unknown(results, by_name)
    for name in sorted({*by_name, *expected}):
        record = by_name.get(name)
        if record is None:
            reason = fleet.reasons.get(name) or "expected, but sent no report"
            yield NodeNote(name=name, state=NodeState.SILENT, reason=reason, expected=True)
            continue
        found = sorted(problems.get(name, ()), key=lambda item: -item.severity.rank)
        compared = [item for item in found if item.severity is Severity.ERROR and item.check.startswith("cluster.")]
        if record.conclusion is Conclusion.FAIL:
            state, reason = NodeState.FAILED, record.reason
        elif compared:
            state, reason = NodeState.FAILED, f"{compared[0].headline} ({compared[0].check})"
        elif record.conclusion is Conclusion.UNKNOWN or name in unknown:
            state = NodeState.UNKNOWN
            reason = record.reason if record.conclusion is Conclusion.UNKNOWN else unknown[name]
        else:
            state, reason = NodeState.PASSED, record.reason
        yield NodeNote(
            name=name,
            state=state,
            reason=reason,
            expected=not expected or name in expected,
            source=record.source,
            rank=record.facts.node.rank if record.facts.node else None,
            problems=tuple(found),
        )


def _problems(causes: Iterable[Cause], known: Mapping[str, object]) -> dict[str, list[NodeProblem]]:
    """The problems of each node."""
    found: dict[str, list[NodeProblem]] = {}
    for cause in causes:
        for problem in cause.problems:
            noted = NodeProblem(
                check=problem.check, headline=problem.headline, severity=cause.severity, scope=cause.scope or "job"
            )
            for subject in dict.fromkeys(problem.subjects):
                for name in nodes_of(subject, known):
                    found.setdefault(name, []).append(noted)
    return found


def _unknown(results: Iterable[Result], known: Mapping[str, object]) -> dict[str, str]:
    """The nodes for which a required comparison could not be made, with the reason."""
    return {
        name: f"{item.reason} ({result.id})"
        for result in results
        if result.family == "cluster" and result.severity is Severity.ERROR and not result.accepted
        for item in result.unjudged
        for name in nodes_of(item.subject, known)
    }


def _undecided(results: Iterable[Result], fleet: Fleet) -> Iterator[str]:
    """Required comparisons that could not be made for the job as a whole."""
    files = {file.source for file in fleet.unread}
    known = {*fleet.expected, *(node.name for node in fleet.nodes)}
    for result in results:
        if result.family == "cluster" and result.severity is Severity.ERROR and not result.accepted:
            others = [item for item in result.unjudged if item.subject not in files]
            if any(not nodes_of(item.subject, known) for item in others) or (
                result.status is Status.UNKNOWN and not result.unjudged
            ):
                yield result.id


def nodes_of(subject: str, known: Iterable[str]) -> tuple[str, ...]:
    """The nodes that a subject names; none if it names something else."""
    names = known if isinstance(known, dict | set) else set(known)
    if subject in names:
        return (subject,)
    if "[" not in subject and "," not in subject:
        return ()
    try:
        found = expand(subject, subject)
    except Exception:  # noqa: BLE001 - a subject may be any text
        return ()
    return found if all(name in names for name in found) else ()


def _categories(families: Iterable[Category], records: Sequence[NodeRecord]) -> Iterator[Category]:
    """Families without a problem say what most nodes say."""
    for category in families:
        if category.mark not in (Mark.PASS, Mark.SKIP) or category.family == "cluster":
            yield category
            continue
        said = Counter(
            (sent.mark, sent.text) for record in records for sent in record.categories if sent.family == category.family
        )
        if not said:
            yield category
            continue
        (mark, text), number = said.most_common(1)[0]
        share = "" if number == len(records) else f" ({number} of {counted(len(records), 'node')})"
        yield replace(category, mark=mark, text=f"{text}{share}", left_out=mark is Mark.SKIP and not share)


def _engine(records: Iterable[NodeRecord]) -> Engine:
    launchers = Counter(record.facts.node.launcher for record in records if record.facts.node)
    launcher = launchers.most_common(1)[0][0] if launchers else None
    return _LAUNCHED.get(launcher or "", "hosts")


def _with_plan(shown: FleetReport, command: str, expectation: Expectation) -> FleetReport:
    """The report with the fixes, and how to start without the nodes that did not pass."""
    report = shown.report
    passing, failing = shown.passing, shown.failing
    broken = tuple(node.name for node in shown.nodes if node.name in set(failing) and node.broken)
    reason = next((cause.problems[0].headline for cause in report.causes if cause.scope == "node"), "failed")
    again = expectation.again or command
    lists = again if "--lists" in again else f"{again} --lists ."
    found = exclusions(failing, broken, reason, lists if passing else "", shown.fleet.fold)
    enough = bool(passing) and (len(passing) >= shown.needed or expectation.min_healthy is None)
    steps = [*_leave_out(shown, found, enough=enough), *plan_fixes(relevant(report.causes), command)]
    return replace(shown, report=replace(report, plan=tuple(steps)), exclusions=found)


def _leave_out(shown: FleetReport, found: Iterable[Exclusion], *, enough: bool) -> Iterator[FixStep]:
    errors = [cause for cause in shown.report.causes if cause.severity is Severity.ERROR]
    for exclusion in found:
        if exclusion.engine != shown.engine:
            continue
        if enough and exclusion.leave_out and errors:
            passed = f"{counted(len(shown.passing), 'node')} that passed"
            listed = " (passing.txt)" if exclusion.engine == "hosts" else ""
            yield FixStep(
                kind="workaround",
                summary=f"Train on the {passed}{listed}, without {shown.fleet.fold(shown.failing)}.",
                commands=exclusion.leave_out,
                solves=errors[0].checks,
            )
        if exclusion.drain:
            yield FixStep(
                kind="workaround",
                summary="Keep other jobs off the nodes that have a problem themselves:",
                commands=exclusion.drain,
                solves=next((cause.checks for cause in errors if cause.scope == "node"), ()),
            )
