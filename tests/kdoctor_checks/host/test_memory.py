from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import GIB, host
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.host.memory import memory


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"memory_total_bytes": 16 * GIB, "memory_available_bytes": 2 * GIB}, Status.PASS),
        ({"memory_total_bytes": 16 * GIB, "memory_available_bytes": 2 * GIB - 1}, Status.FAIL),
        ({"memory_total_bytes": 1000 * GIB, "memory_available_bytes": 50 * GIB}, Status.PASS),
        ({"memory_total_bytes": 1000 * GIB, "memory_available_bytes": 50 * GIB - 1}, Status.FAIL),
        ({"memory_available_bytes": None}, Status.UNKNOWN),
        ({"memory_total_bytes": None}, Status.UNKNOWN),
    ],
)
def test_little_available_memory_warns(change: dict[str, Any], status: Status) -> None:
    result = compute_check(memory, host(**change))
    assert (result.status, result.severity) == (status, Severity.WARNING)


def test_checklist_sets_the_required_memory() -> None:
    assert compute_check(memory, host(memory_available_bytes=400 * GIB), least_gib=500.0).status is Status.FAIL
