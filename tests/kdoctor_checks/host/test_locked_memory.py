from __future__ import annotations

import pytest

from helpers.facts import MIB, host
from kdoctor.facts import ResourceLimit
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.host.locked_memory import locked_memory


@pytest.mark.parametrize(
    ("soft", "status"), [(None, Status.PASS), (64 * MIB, Status.PASS), (64 * MIB - 1, Status.FAIL), (0, Status.FAIL)]
)
def test_low_limit_fails_as_info(soft: int | None, status: Status) -> None:
    result = compute_check(locked_memory, host(limits=(ResourceLimit(name="memlock", soft=soft, hard=None),)))
    assert (result.status, result.severity) == (status, Severity.INFO)


def test_rollback_restores_the_recorded_limit_in_kib() -> None:
    small = host(limits=(ResourceLimit(name="memlock", soft=64 * 1024, hard=64 * 1024),))
    finding = compute_check(locked_memory, small).findings[0].finding
    assert (finding.observed, finding.rollback.commands) == ("64 KiB", ("ulimit -l 64",))


def test_unread_limit_is_unknown() -> None:
    assert compute_check(locked_memory, host(limits=())).status is Status.UNKNOWN
