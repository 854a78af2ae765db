"""Which tests of a training ``make test`` runs, and what their shared training has to train.

A training shows the same with every run of the same versions, so ``make test`` runs one of each kind, and ``make
test-smoke`` the others. Where one kind has several quick ones, they take turns: half of them run on even days. So do
whole files, and halves of files, of half a minute.
"""

import datetime as dt
import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest

TODAY = int(os.environ.get("KDOCTOR_TEST_DAY") or dt.datetime.now(dt.timezone.utc).toordinal())
"""The day by which tests are drawn."""
_TURNS = 2


def tiered(names: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Parameters of a test. Those that are not quick, or have their turn tomorrow, are left to ``make test-smoke``."""
    turn = TODAY % _TURNS if len(quick) > 1 else 0
    run = sorted(quick, key=str)[turn::_TURNS]
    return [pytest.param(name, marks=() if name in run else pytest.mark.smoke_full) for name in names]


def every_second_day(turn: int) -> pytest.MarkDecorator:
    """The mark of tests of half a minute that run on even days (0) or on odd ones (1)."""
    return pytest.mark.smoke_full if turn != TODAY % _TURNS else pytest.mark.skipif(condition=False, reason="")


def asked_for(request: pytest.FixtureRequest, parameter: str = "name") -> list[Any]:
    """The values that a parameter has in the tests of this module that run, for a fixture that trains for all."""
    found: list[Any] = []
    for item in request.session.items:
        given = getattr(item, "callspec", None)
        if item.path == request.node.path and given and parameter in given.params:
            found += [given.params[parameter]] if given.params[parameter] not in found else []
    return found
