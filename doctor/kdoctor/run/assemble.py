"""Facts and a plan into a report."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kdoctor.checklist.plan import scenarios_to_run
from kdoctor.checklist.policy import decisions
from kdoctor.checklist.resolve import Checklist
from kdoctor.engine.judge import FactTable, PlannedCheck, Rules, asks_for, conclude, judge, unused_waivers
from kdoctor.engine.report import Report
from kdoctor.facts import Target
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.model import VersionMatrix


@dataclass(frozen=True, kw_only=True)
class RunNote:
    """How the facts were come by."""

    target: str
    """The interpreter, for where the facts do not name it."""
    started_at: dt.datetime
    duration_s: float
    interrupted: bool = False


def assess(
    facts: FactTable, checklist: Checklist, planned: Sequence[PlannedCheck], rules: Rules, note: RunNote
) -> Report:
    """Judge the facts by the plan, and say what the checklist decided in advance about what failed.

    Raises:
        kdoctor.matrix.MatrixError: see :func:`with_matrix`.
    """
    rules = with_matrix(rules, planned)
    results = judge(planned, facts, rules)
    awaited = scenarios_to_run(checklist, planned)
    trainings = _of_trainings(planned, {entry.scenario.id for entry in awaited})
    return Report(
        verdict=conclude(results, rules.fail_on, interrupted=note.interrupted, trainings=trainings),
        target=describe_target(facts, note.target),
        checklist=checklist.title,
        results=results,
        decisions=decisions(results, checklist),
        scenarios=tuple(entry.note for entry in awaited),
        unused_waivers=unused_waivers(results, rules.waivers),
        duration_s=note.duration_s,
        started_at=note.started_at.isoformat(timespec="seconds"),
        interrupted=note.interrupted,
        fail_on=rules.fail_on,
    )


def _of_trainings(planned: Sequence[PlannedCheck], scenarios: Collection[str]) -> frozenset[str]:
    """Ids of the checks that judge one of the scenarios."""
    return frozenset(entry.check.id for entry in planned if not entry.deselected and entry.check.scenario in scenarios)


def with_matrix(rules: Rules, planned: Sequence[PlannedCheck], file: str | None = None) -> Rules:
    """The rules with the version matrix, if they have none and a check that will be evaluated asks for it.

    Args:
        rules: the rules of the run.
        planned: its checks.
        file: a matrix of the user's own (``--matrix``); otherwise ``KDOCTOR_MATRIX`` may name one.

    Raises:
        kdoctor.matrix.MatrixError: a matrix cannot be used.
    """
    if rules.matrix is not None or not (file is not None or asks_for(planned, VersionMatrix, rules)):
        return rules

    return replace(rules, matrix=load_matrix(file, os.environ))


def describe_target(facts: FactTable, otherwise: str) -> str:
    """The examined interpreter in one line: path, version, kind of environment, and how it was chosen."""
    target = facts.get(Target)
    if not isinstance(target, Target):
        return otherwise
    version = f"{target.implementation.replace('cpython', 'Python')} {target.version}"
    return f"{target.executable} ({version}, {target.environment}; chosen by: {target.chosen_by})"
