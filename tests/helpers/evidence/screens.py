"""What one check says: on each kind of machine, after each change of one fact, and where its status changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from helpers.evidence.comparing import CHECKS, Table
from helpers.evidence.machines import BUILT, HOST, NETWORK, STATED, table
from helpers.evidence.mutations import Mutation, mutations
from helpers.facts import h100_node, sampled_gpu, sampling, smoke_case, smoke_run
from helpers.facts.watch import BUSY, watched
from helpers.fleets import fleet
from helpers.judging import TODAY, shipped_matrix
from helpers.rdma import device
from helpers.rdma import network as network_of
from kdoctor import testing
from kdoctor.check import Check
from kdoctor.engine.judge import PlannedCheck, Rules, judge
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, SmokeRun, SmokeRuns, Unavailable
from kdoctor.model import GpuAssumption, Status
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.testing import fact_table

_GPUS = 4
_ASSUMED = replace(STATED, gpus=GpuAssumption(count=_GPUS, model="NVIDIA H100*"))
_STEPS = 70
"""Enough to halve the distance of any two numbers until nothing is between them."""


Difference = tuple[tuple[object, ...], float, float]
"""The place of the only number that differs, and both numbers."""


def screen(check: Check) -> str:
    """The statuses of a check and its new lines, machine by machine, and the values at which its status changes."""
    said: set[str] = set()
    changes = _changes(check)
    lines = [*_machines(check, said), *_single_changes(check, changes, said), *_runs_changed(check, said)]
    return "".join(f"{line}\n" for line in (*lines, *_limits(check, changes)))


def _machines(check: Check, said: set[str]) -> Iterator[str]:
    for name in BUILT:
        yield from _new_lines(f"{name}", _judged(check, {**table(name), **_runs(check.scenario)}), said)


def _single_changes(check: Check, changes: Sequence[Mutation], said: set[str]) -> Iterator[str]:
    for change in changes:
        if change.kind != "huge":
            yield from _new_lines(f"{change.path} {change.kind}", _after(check, change.group), said)


_CASES: Mapping[str, Mapping[str, Any]] = {
    "one replica": {"replicas": 1},
    "raised": {"outcome": "raised", "error_type": "ValueError", "error_message": "no", "losses": (), "weights": None},
    "timed out": {"outcome": "timed-out", "losses": (), "weights": None},
    "not compared": {"weight_deviation": None, "reference_losses": ()},
    "far away": {"weight_deviation": 0.5, "losses": (1.0, 0.9)},
}
"""Changes of all cases of a run."""


def _runs_changed(check: Check, said: set[str]) -> Iterator[str]:
    runs = _base(check).get(SmokeRuns)
    run = runs.runs.get(check.scenario or "") if isinstance(runs, SmokeRuns) else None
    if isinstance(run, SmokeRun):
        for name, values in _CASES.items():
            changed = replace(run, cases=tuple(replace(case, **values) for case in run.cases))
            yield from _new_lines(name, _after(check, SmokeRuns(runs={run.scenario: changed})), said)


def _limits(check: Check, changes: Sequence[Mutation]) -> Iterator[str]:
    """For each number whose status differs at zero or at a huge value: the neighbours where it changes."""
    usual = _judged(check, _base(check)).status
    for change in changes:
        if change.kind in ("zero", "huge") and _after(check, change.group).status is not usual:
            group = _base(check)[type(change.group)]
            found = _differing(group, change.group)
            if found and not isinstance(group, Unavailable):
                yield _limit(check, change.path, group, found)


def _limit(check: Check, path: str, group: FactGroup, found: Difference) -> str:
    place, good, bad = found
    usual = _judged(check, _base(check)).status
    other = _after(check, _with(group, place, bad)).status
    is_whole = isinstance(good, int)
    for _ in range(_STEPS):
        middle = (good + bad) // 2 if is_whole else (good + bad) / 2
        if middle in (good, bad):
            break
        status = _after(check, _with(group, place, middle)).status
        good, bad, other = (middle, bad, other) if status is usual else (good, middle, status)
    form = "d" if is_whole else ".6g"
    return f"{path}: {usual.value} at {good:{form}}, {other.value} at {bad:{form}}"


def _differing(one: Any, other: Any, place: tuple[object, ...] = ()) -> Difference | None:
    if is_dataclass(one) and type(one) is type(other):
        members: list[tuple[object, Any, Any]] = [
            (field.name, getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
        ]
    elif isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        members = [(index, *pair) for index, pair in enumerate(zip(one, other, strict=True))]
    elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        members = [(name, one[name], other[name]) for name in one]
    else:
        is_number = isinstance(one, int | float) and type(one) is type(other) and one != other
        return (place, one, other) if is_number else None
    found = (_differing(before, after, (*place, name)) for name, before, after in members if before != after)
    return next(filter(None, found), None)


def _with(value: Any, place: tuple[object, ...], number: float) -> Any:
    if not place:
        return number
    first, *rest = place
    if isinstance(value, tuple):
        return tuple(_with(item, tuple(rest), number) if index == first else item for index, item in enumerate(value))
    if isinstance(value, dict):
        return {name: _with(item, tuple(rest), number) if name == first else item for name, item in value.items()}
    return replace(value, **{str(first): _with(getattr(value, str(first)), tuple(rest), number)})


@cache
def _runs(scenario: str | None) -> Table:
    """A run of the scenario in which every case trained."""
    name = scenario or "smoke.baseline"
    known = next((item.cases for item in SCENARIOS if item.id == name), ())
    cases = [smoke_case(case, _GPUS) for case in known]
    return {SmokeRuns: SmokeRuns(runs={name: smoke_run(name, _GPUS, *cases)})}


@cache
def _node(name: str) -> Table:
    """A node with four H100, because half the GPUs take half the time, or with other GPUs."""
    network = (network_of(*(device(index) for index in range(_GPUS))), *NETWORK[1:])
    watching = (watched(_GPUS), sampling(_GPUS, *(sampled_gpu(index, series=BUSY) for index in range(_GPUS))))
    h100 = fact_table(*h100_node(_GPUS), HOST, *network, fleet(4), *watching)
    return {**testing._node(), **(h100 if name == "h100" else table(name))}


@cache
def _of_check(check_id: str) -> Table:
    """The first node on which the check is not skipped."""
    check = next(item for item in CHECKS if item.id == check_id)
    nodes = [{**_node(name), **_runs(check.scenario)} for name in ("h100", "v100", "geforce")]
    return next((node for node in nodes if _judged(check, node).status is not Status.SKIP), nodes[0])


def _base(check: Check) -> Table:
    return _of_check(check.id)


def _changes(check: Check) -> tuple[Mutation, ...]:
    asked = dict.fromkeys(SmokeRuns if kind is SmokeRun else kind for kind in check.facts.values())
    return tuple(change for kind in asked for change in _changes_of(_base(check).get(kind)))


_known: dict[int, tuple[FactGroup, tuple[Mutation, ...]]] = {}


def _changes_of(group: object) -> tuple[Mutation, ...]:
    if not isinstance(group, FactGroup):
        return ()
    if id(group) not in _known:
        changes = tuple(change for change in mutations(group) if change.kind != "negative")
        _known[id(group)] = group, changes
    return _known[id(group)][1]


def _after(check: Check, group: FactGroup) -> Result:
    return _judged(check, {**_base(check), type(group): group})


def _judged(check: Check, facts: Table) -> Result:
    plan = [PlannedCheck(check=replace(check, requires=()), severity=check.severity)]
    (result,) = judge(plan, facts, Rules(assumptions=_ASSUMED, today=TODAY, matrix=shipped_matrix()))
    return result


def _new_lines(title: str, result: Result, said: set[str]) -> Iterator[str]:
    lines = [line for line in _lines(result) if line not in said]
    said.update(lines)
    if lines:
        yield f"{title}: {result.status.value}"
        yield from dict.fromkeys(f"  {line}" for line in lines)


def _lines(result: Result) -> Iterator[str]:
    for item in result.evidence:
        yield f"+ {item.subject}: {item.observed}" + (f" [{item.brief}]" if item.brief else "")
    for judged in result.findings:
        found = judged.finding
        yield f"- {found.subject}: {found.observed}" + (f" [{found.brief}]" if found.brief else "")
        yield f"  expected {found.expected}"
        yield f"  fix: {found.remedy.summary} {' && '.join((*found.remedy.commands, *found.remedy.look))}".rstrip()
        yield f"  rollback: {found.rollback.why} {' && '.join(found.rollback.commands)}".rstrip()
        if found.explained_by or found.after:
            yield f"  explained by {', '.join(found.explained_by)}; after {', '.join(found.after)}"
    for gap in result.unjudged:
        yield f"? {gap.subject}: {gap.reason}" + (f" ({', '.join(gap.explained_by)})" if gap.explained_by else "")
    if not (result.evidence or result.findings or result.unjudged):
        yield f"{result.reason}"
