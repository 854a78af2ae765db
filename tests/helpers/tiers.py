"""Which tests of a training ``make test`` runs, and what their shared training has to train.

A training shows the same with every run of the same versions, so ``make test`` runs one of each kind, and ``make
test-smoke`` the others.
"""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def tiered(names: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Parameters of a test. Those that are not quick are left to ``make test-smoke``."""
    return [pytest.param(name, marks=() if name in quick else pytest.mark.smoke_full) for name in names]


def asked_for(request: pytest.FixtureRequest, parameter: str = "name") -> list[Any]:
    """The values that a parameter has in the tests of this module that run, for a fixture that trains for all."""
    found: list[Any] = []
    for item in request.session.items:
        given = getattr(item, "callspec", None)
        if item.path == request.node.path and given and parameter in given.params:
            found += [given.params[parameter]] if given.params[parameter] not in found else []
    return found
