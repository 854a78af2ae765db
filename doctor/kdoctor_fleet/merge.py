"""Judges the reports of many nodes as one fleet, and builds its report."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

from kdoctor.engine.categories import categories
from kdoctor.engine.causes import AboutOneThing, find_causes, relevant
from kdoctor.engine.fixes import plan_fixes
from kdoctor.engine.judge import judge, unused_waivers
from kdoctor.engine.report import Category, Cause, FixStep, JudgedFinding, Mark, Result
from kdoctor.model import Severity, Status
from kdoctor.records import record
from kdoctor.run.plan import Plan
from kdoctor.text.lists import counted
from kdoctor_fleet.exclusion import Engine, Exclusion, exclusions
from kdoctor_fleet.facts import Fleet, FleetNode, Nodes, NodeState, PairTests
from kdoctor_fleet.names import fold
from kdoctor_fleet.read import Gathered
from kdoctor_fleet.report import FleetCause, FleetReport, NodeNote, NodeProblem, scope_of
from kdoctor_fleet.results import merge_results
from kdoctor_fleet.states import Asked, Measure, own_state
from kdoctor_fleet.verdict import conclude_fleet, needed_nodes

_LAUNCHED: Mapping[str, Engine] = {"slurm": "slurm", "kubernetes": "kubernetes"}


@record
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
    remedies: Mapping[str, str] | None = None,
    measures: Mapping[str, Measure] = MappingProxyType({}),
) -> FleetReport:
    """The report of the fleet.

    Args:
        gathered: what the files contain.
        expectation: which nodes should be there.
        plan: the checks over all nodes, from the fleet's checklist.
        merged_at: now, UTC, ISO 8601.
        duration_s: how long it took to read the files.
        pairs: what trainings over several nodes showed.
        remedies: what to do where a check of a node failed, by its id.
        measures: the known checklists by name.
    """
    fleet = Fleet(
        nodes=tuple(gathered.nodes[name] for name in sorted(gathered.nodes)),
        expected=expectation.names,
        reasons=gathered.silent,
        unread=tuple(gathered.unread),
        pairs=pairs,
        merged_at=merged_at,
        fold=fold,
    )
    own, tallies = merge_results(fleet.nodes, fold, remedies or {})
    results = (*_of_equal_nodes(judge(plan.checks, {Fleet: fleet}, plan.rules)), *own)
    known = frozenset({*fleet.expected, *gathered.nodes})
    alike = not any(result.findings for result in results if result.id == "cluster.tf-config")
    causes = tuple(
        _with_nodes(cause, fleet, known, tallies, alike=alike) for cause in find_causes(results, _related(known))
    )
    asked = Asked.of(fleet.nodes, measures, merged_at)
    nodes = tuple(_notes(fleet, known, results, causes, asked))
    may_be_nodes = 0 if fleet.expected else len(fleet.unread)
    needed = needed_nodes(expectation.min_healthy, len(fleet.expected) or len(fleet.nodes) + may_be_nodes)
    undecided = tuple(_undecided(results, fleet, known))
    found = FleetReport(
        verdict=conclude_fleet(
            nodes,
            needed,
            causes=causes,
            unread=may_be_nodes,
            undecided=undecided,
            options=asked.options,
            as_of=asked.day_before(merged_at),
        ),
        target=_describe(nodes),
        checklist=plan.asked,
        results=results,
        categories=tuple(_categories(categories(results, causes), fleet.nodes)),
        causes=causes,
        command=plan.command,
        details=expectation.again and f"{expectation.again} -v",
        unused_waivers=unused_waivers(results, plan.rules.waivers),
        duration_s=duration_s,
        started_at=merged_at,
        fail_on=plan.rules.fail_on,
        nodes=nodes,
        needed=needed,
        unread=fleet.unread,
        engine=expectation.engine or _engine(fleet.nodes),
    )
    return _with_plan(found, expectation)


def _describe(nodes: Sequence[NodeNote]) -> str:
    """``64 nodes (61 passed, 2 failed, 1 silent): node[001-064]``; those that were not expected do not count."""
    names = [node.name for node in nodes if node.expected]
    states = Counter(node.state for node in nodes if node.expected)
    numbers = ", ".join(f"{states[state]} {state.value}" for state in NodeState if states[state])
    others = fold(node.name for node in nodes if not node.expected)
    return f"{counted(len(names), 'node')} ({numbers}): {fold(names)}{f'; not expected: {others}' if others else ''}"


def _of_equal_nodes(results: Sequence[Result]) -> Iterator[Result]:
    """A difference explains another one only if exactly the same nodes have it."""
    subjects = {result.id: {judged.finding.subject for judged in result.findings} for result in results}

    def explained(judged: JudgedFinding) -> JudgedFinding:
        finding = judged.finding
        kept = tuple(check for check in finding.explained_by if finding.subject in subjects.get(check, ()))
        return replace(judged, finding=replace(finding, explained_by=kept))

    for result in results:
        yield replace(result, findings=tuple(map(explained, result.findings)))


def nodes_of(subject: str, known: frozenset[str]) -> tuple[str, ...]:
    """The nodes that a subject names; none if it names something else."""
    if isinstance(subject, Nodes):
        return subject.names
    return (subject,) if subject in known else ()


def _related(known: frozenset[str]) -> AboutOneThing:
    """A problem explains others of the same nodes only."""

    @lru_cache(maxsize=4096)
    def named(subject: str) -> frozenset[str]:
        return frozenset(nodes_of(subject, known))

    return lambda cause, effect: named(cause) >= named(effect)


def _with_nodes(
    cause: Cause, fleet: Fleet, known: frozenset[str], tallies: Mapping[str, tuple[int, int]], *, alike: bool
) -> FleetCause:
    """The cause with its nodes, and whose problem it is.

    If a comparison names all nodes, no node is at fault and none is drained.
    """
    check, subjects = cause.checks[0], [subject for problem in cause.problems for subject in problem.subjects]
    passed, failed = tallies.get(check, (0, 0))
    all_differ = check.startswith("cluster.") and fleet.fold(node.name for node in fleet.nodes) in subjects
    scope = "job" if all_differ else scope_of(check, passed=passed, failed=failed, alike=alike)
    names = tuple(dict.fromkeys(name for subject in subjects for name in nodes_of(subject, known)))
    return FleetCause(**{**vars(cause), "scope": scope, "nodes": names})


def _notes(
    fleet: Fleet, known: frozenset[str], results: Iterable[Result], causes: Iterable[FleetCause], asked: Asked
) -> Iterator[NodeNote]:
    """Every node with its state: what its own checks say, and what the comparison adds."""
    expected, by_name = set(fleet.expected), {node.name: node for node in fleet.nodes}
    problems = _problems(causes, known)
    unknown = _unknown(results, known)
    for name in sorted(known):
        node = by_name.get(name)
        if node is None:
            reason = fleet.reasons.get(name) or "expected, but sent no report"
            yield NodeNote(name=name, state=NodeState.SILENT, reason=reason, expected=True)
            continue
        found = sorted(problems.get(name, ()), key=lambda item: -item.severity.rank)
        errors = [item for item in found if item.severity is Severity.ERROR]
        state, reason = own_state(node, asked)
        if errors and state is not NodeState.FAILED:
            state, reason = NodeState.FAILED, f"{errors[0].headline} ({errors[0].check})"
        elif name in unknown and state is NodeState.PASSED:
            state, reason = NodeState.UNKNOWN, unknown[name]
        yield NodeNote(
            name=name,
            state=state,
            reason=reason,
            expected=not expected or name in expected,
            broken=any(item.scope == "node" for item in errors),
            source=node.source,
            rank=node.node.rank if node.node else None,
            problems=tuple(found),
        )


def _problems(causes: Iterable[FleetCause], known: frozenset[str]) -> dict[str, list[NodeProblem]]:
    found: dict[str, list[NodeProblem]] = {}
    for cause in causes:
        for problem in cause.problems:
            noted = NodeProblem(
                check=problem.check, headline=problem.headline, severity=cause.severity, scope=cause.scope
            )
            for subject in dict.fromkeys(problem.subjects):
                for name in nodes_of(subject, known):
                    found.setdefault(name, []).append(noted)
    return found


def _required(results: Iterable[Result]) -> Iterator[Result]:
    """The comparisons that must be possible."""
    return (
        result
        for result in results
        if result.family == "cluster" and result.severity is Severity.ERROR and not result.accepted
    )


def _unknown(results: Iterable[Result], known: frozenset[str]) -> dict[str, str]:
    """The nodes for which a required comparison could not be made, with the reason."""
    return {
        name: f"{item.reason} ({result.id})"
        for result in _required(results)
        for item in result.unjudged
        for name in nodes_of(item.subject, known)
    }


def _undecided(results: Iterable[Result], fleet: Fleet, known: frozenset[str]) -> Iterator[str]:
    """Required comparisons that could not be made for the job as a whole."""
    files = {file.source for file in fleet.unread}
    for result in _required(results):
        others = [item for item in result.unjudged if item.subject not in files]
        if any(not nodes_of(item.subject, known) for item in others) or (
            result.status is Status.UNKNOWN and not result.unjudged
        ):
            yield result.id


def _categories(families: Iterable[Category], nodes: Sequence[FleetNode]) -> Iterator[Category]:
    """Families without a problem say what most nodes say."""
    for category in families:
        said = Counter(
            (sent.mark, sent.text) for node in nodes for sent in node.categories if sent.family == category.family
        )
        if category.mark not in (Mark.PASS, Mark.SKIP) or not said:
            yield category
            continue
        (mark, text), number = said.most_common(1)[0]
        share = "" if number == len(nodes) else f" ({number} of {counted(len(nodes), 'node')})"
        yield replace(category, mark=mark, text=f"{text}{share}", left_out=mark is Mark.SKIP and not share)


def _engine(nodes: Iterable[FleetNode]) -> Engine:
    launchers = Counter(node.node.launcher for node in nodes if node.node)
    launcher = launchers.most_common(1)[0][0] if launchers else None
    return _LAUNCHED.get(launcher or "", "hosts")


def _with_plan(report: FleetReport, expectation: Expectation) -> FleetReport:
    """The report with the fixes, and how to start without the nodes that did not pass."""
    passing, failing = report.passing, report.failing
    broken = tuple(node.name for node in report.nodes if node.broken and node.name in set(failing))
    reason = next((cause.problems[0].headline for cause in report.causes if cause.scope == "node"), "failed")
    again = expectation.again or report.command
    lists = again if "--lists" in again else f"{again} --lists ."
    found = exclusions(failing, broken, reason, lists if passing else "", fold)
    enough = bool(passing) and (len(passing) >= report.needed or expectation.min_healthy is None)
    steps = [*_leave_out(report, found, enough=enough), *plan_fixes(relevant(report.causes), report.command)]
    return replace(report, plan=tuple(steps), exclusions=found)


def _leave_out(report: FleetReport, found: Iterable[Exclusion], *, enough: bool) -> Iterator[FixStep]:
    errors = [cause for cause in report.causes if cause.severity is Severity.ERROR]
    for exclusion in found:
        if exclusion.engine != report.engine:
            continue
        if enough and exclusion.leave_out and errors:
            passed = f"{counted(len(report.passing), 'node')} that passed"
            listed = " (passing.txt)" if exclusion.engine == "hosts" else ""
            yield FixStep(
                kind="workaround",
                summary=f"Train on the {passed}{listed}, without {fold(report.failing)}.",
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
