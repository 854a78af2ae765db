"""One result of each check from its results on all nodes. Problems with one headline are one finding. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kdoctor.engine.report import Cause, JudgedFinding, Result
from kdoctor.model import Action, Evidence, Finding, Remedy, Rollback, Severity, Status, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor.text.subjects import name_subjects
from kdoctor_fleet.facts import FleetNode, NodeResult, Nodes

Fold = Callable[[Iterable[str]], Nodes]


@dataclass(kw_only=True)
class _Group:
    action: Action
    headline: str
    nodes: list[str] = field(default_factory=list)
    subjects: dict[str, list[str]] = field(default_factory=dict)
    """What it is about on a node (``GPU 3``), to the nodes."""


@dataclass(kw_only=True)
class _Check:
    id: str
    title: str
    severity: Severity
    passed: int = 0
    failed: int = 0
    groups: dict[str, _Group] = field(default_factory=dict)
    """By headline."""
    explained: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """The check that explains the failure and its headline, to the nodes; empty texts if none does."""
    unknown: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """The check that explains it, or an empty text, and the reason; to the nodes."""


def merge_results(
    nodes: Sequence[FleetNode], fold: Fold, remedies: Mapping[str, str]
) -> tuple[tuple[Result, ...], dict[str, tuple[int, int]]]:
    """The result of each check over all nodes, and on how many it passed and failed.

    Args:
        nodes: what the nodes reported.
        fold: names several nodes in short.
        remedies: what to do, by check. No fix is taken from a node.
    """
    checks: dict[str, _Check] = {}
    for node in nodes:
        _add(node, checks)
    results = tuple(_result(check, len(nodes), fold, remedies.get(check.id, "")) for check in checks.values())
    return results, {check.id: (check.passed, check.failed) for check in checks.values()}


def _add(node: FleetNode, checks: dict[str, _Check]) -> None:
    lines = {line.id: line for line in node.results}
    explained = {
        check: (cause.checks[0], cause.problems[0].headline if cause.problems else "")
        for cause in node.causes
        for check in cause.explains
    }
    missing = {check: cause.checks[0] for cause in node.causes for check in cause.unjudged}
    own = {check for cause in node.causes for check in cause.checks}
    for line in node.results:
        check = checks.get(line.id)
        if check is None:
            check = checks[line.id] = _Check(id=line.id, title=line.title, severity=line.severity)
        if line.severity.rank > check.severity.rank:
            check.severity = line.severity
        if line.status is Status.PASS:
            check.passed += 1
        elif line.status is Status.FAIL:
            check.failed += 1
            if line.id not in own:
                check.explained.setdefault(explained.get(line.id, ("", "")), []).append(node.name)
        elif line.status is Status.UNKNOWN and not line.accepted:
            check.unknown.setdefault((missing.get(line.id, ""), line.reason or ""), []).append(node.name)
    for cause in node.causes:
        _add_cause(node.name, cause, lines, checks)


def _add_cause(name: str, cause: Cause, lines: dict[str, NodeResult], checks: dict[str, _Check]) -> None:
    for problem in cause.problems:
        line = lines.get(problem.check)
        if line is None or line.status is not Status.FAIL:
            continue
        group = checks[line.id].groups.setdefault(
            problem.headline, _Group(action=line.action, headline=problem.headline)
        )
        if not group.nodes or group.nodes[-1] != name:
            group.nodes.append(name)
        group.subjects.setdefault(name_subjects(problem.subjects), []).append(name)


def _result(check: _Check, total: int, fold: Fold, remedy: str) -> Result:
    findings = tuple(JudgedFinding(finding=finding) for finding in _findings(check, fold, remedy))
    unjudged = tuple(
        Unjudged(subject=fold(nodes), reason=reason or "no reason was given", explained_by=(cause,) if cause else ())
        for (cause, reason), nodes in check.unknown.items()
    )
    where = "all nodes" if check.passed == total else counted(check.passed, "node")
    evidence = (Evidence(subject=where, observed=f"passed on {check.passed} of {total}"),) if check.passed else ()
    status = Status.SKIP
    if findings:
        status = Status.FAIL
    elif unjudged:
        status = Status.UNKNOWN
    elif check.passed:
        status = Status.PASS
    reason = "; ".join(f"{item.subject}: {item.reason}" for item in unjudged) or None
    return Result(
        id=check.id,
        family=check.id.partition(".")[0],
        title=check.title,
        status=status,
        severity=check.severity,
        reason="skipped on every node" if status is Status.SKIP else reason,
        findings=findings,
        evidence=evidence,
        unjudged=unjudged,
    )


_BY_NODE = Rollback.irreversible("see the reports of the nodes")


def _findings(check: _Check, fold: Fold, remedy: str) -> Iterator[Finding]:
    summary = f"{remedy[:1].upper()}{remedy[1:]} The commands are in the report of a node.".strip()
    for group in check.groups.values():
        about, *others = group.subjects
        brief = f"{about}: {group.headline}" if not others else group.headline
        each = some([f"{subject} on {fold(nodes)}" for subject, nodes in group.subjects.items()])
        yield Finding(
            subject=fold(group.nodes),
            observed=brief if not others else f"{group.headline}: {each}",
            brief=brief,
            expected=check.title,
            remedy=Remedy(summary=summary, action=group.action),
            rollback=_BY_NODE,
        )
    for (cause, _), nodes in check.explained.items():
        summary = f"See the report of a node: kdoctor explain {check.id}"
        yield Finding(
            subject=fold(nodes),
            observed=f"failed because of {cause}" if cause else "failed",
            expected=check.title,
            remedy=Remedy.configure(summary),
            rollback=_BY_NODE,
            explained_by=(cause,) if cause else (),
        )
