"""Evaluate one check on given facts, through the real judge."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Any

from kdoctor.check import Check
from kdoctor.engine.judge import PlannedCheck, Rules, judge
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, SmokeRun, SmokeRuns, Unavailable
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Assumptions

shipped_matrix = cache(load_matrix)
"""The shipped version matrix, read once."""

TODAY = date(2026, 11, 20)


def fact_table(*facts: FactGroup, scenario: str | None = None) -> dict[type[FactGroup], FactGroup | Unavailable]:
    """Groups by type. A later group replaces an earlier one of its type. A ``SmokeRun`` is the run of its scenario."""
    table: dict[type[FactGroup], FactGroup | Unavailable] = {}
    for group in facts:
        if isinstance(group, SmokeRun):
            table[SmokeRuns] = SmokeRuns(runs={scenario or group.scenario: group})
        else:
            table[type(group)] = group
    return table


def compute_check(
    check: Check,
    *facts: FactGroup,
    assumptions: Assumptions | None = None,
    missing: Mapping[type[FactGroup], str] | None = None,
    matrix: VersionMatrix | None = None,
    **parameters: Any,
) -> Result:
    """The result of a check on these facts. Other groups are unavailable.

    Args:
        check: the check, evaluated without its prerequisites.
        facts: groups of facts. A later group replaces an earlier one of its type.
        assumptions: the checklist's assumptions.
        missing: groups to make unavailable, with the reason.
        matrix: the version matrix, by default the shipped one.
        parameters: the check's parameters, as a checklist would set them.
    """
    table = fact_table(*facts, scenario=check.scenario)
    for group, reason in (missing or {}).items():
        table[group] = Unavailable(unavailable=reason)
    plan = [PlannedCheck(check=check, severity=check.severity, parameters=parameters)]
    (result,) = judge(
        plan, table, Rules(assumptions=assumptions or Assumptions(), today=TODAY, matrix=matrix or shipped_matrix())
    )
    return result
