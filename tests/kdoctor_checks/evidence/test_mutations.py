"""No status gets better by losing information, and no subject is lost in silence."""

import os
import random
from collections.abc import Callable, Collection
from functools import cache

import pytest

from helpers.evidence.comparing import Results, evaluate, problems
from helpers.evidence.machines import BUILT, DESCRIBED, STATED, table
from helpers.evidence.mutations import Mutation, mutations
from kdoctor.facts import FactGroup, Unavailable

SHORT, SHORT_PAIRS = 30, 15
"""Single and double mutations of each machine in `make test`."""
PAIRS = int(os.environ.get("KDOCTOR_EVIDENCE_PAIRS", "500"))
"""Double mutations of each machine in `make evidence`."""


@cache
def before(name: str) -> Results:
    return evaluate(table(name), STATED)


@cache
def every(name: str) -> tuple[Mutation, ...]:
    groups = [group for group in table(name).values() if not isinstance(group, Unavailable)]
    return tuple(change for group in groups for change in mutations(group))


def faults(name: str, chosen: Collection[Collection[Mutation]]) -> list[str]:
    found: list[str] = []
    for changes in chosen:
        kinds: dict[type[FactGroup], FactGroup] = {type(change.group): change.group for change in changes}
        if len(kinds) < len(changes):
            continue  # the second one would undo the first
        after = evaluate({**table(name), **kinds}, STATED, kinds)
        about = " and ".join(f"{change.path} {change.kind}" for change in changes)
        found += [f"{about}: {problem}" for problem in problems(before(name), after, changes)]
    return found


def singles(name: str) -> list[tuple[Mutation, ...]]:
    return [(change,) for change in every(name)]


def pairs(name: str, count: int) -> list[tuple[Mutation, ...]]:
    chance = random.Random(name)  # noqa: S311 - a sample, the same in every run
    return [tuple(chance.sample(every(name), 2)) for _ in range(count)]


@pytest.mark.parametrize("name", BUILT)
def test_no_status_gets_better_by_losing_a_fact(name: str) -> None:
    chance = random.Random(name)  # noqa: S311 - a sample, the same in every run
    chosen = singles(name)
    assert faults(name, chance.sample(chosen, min(SHORT, len(chosen)))) == []
    assert faults(name, pairs(name, SHORT_PAIRS)) == []


@pytest.mark.evidence
@pytest.mark.parametrize("name", [*BUILT, *(pytest.param(name, marks=pytest.mark.compiler) for name in DESCRIBED)])
def test_no_status_gets_better_by_losing_any_fact(name: str, record_property: Callable[[str, object], None]) -> None:
    chosen = [*singles(name), *pairs(name, PAIRS)]
    record_property("machines tried", len(chosen))
    assert faults(name, chosen) == []
