"""Which tests of a training ``make test`` runs, and what their shared training has to train.

A training shows the same with every run of the same versions, so ``make test`` runs one of each kind, and ``make
test-smoke`` the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def tiered(names: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Parameters of a test. Those that are not quick are left to ``make test-smoke``."""
    return [pytest.param(name, marks=() if name in quick else pytest.mark.smoke_full) for name in names]


def asked_for(request: pytest.FixtureRequest, parameter: str = "name") -> list[Any]:
    """The values that a parameter has in the tests of this module that run, for a fixture that trains for all."""
    items = (item for item in request.session.items if item.path == request.node.path)
    calls = (getattr(item, "callspec", None) for item in items)
    return [*dict.fromkeys(call.params[parameter] for call in calls if call and parameter in call.params)]
