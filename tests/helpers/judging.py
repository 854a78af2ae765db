"""Evaluate one check on given facts, through the real judge."""

from __future__ import annotations

from datetime import date
from functools import cache

from kdoctor.facts import FactGroup, SmokeRun, SmokeRuns, Unavailable
from kdoctor.matrix.load import load_matrix

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
