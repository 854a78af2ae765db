from __future__ import annotations

import pytest

from helpers.facts import host
from kdoctor.facts import ResourceLimit
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.host.open_files import open_files


@pytest.mark.parametrize(
    ("soft", "status"), [(None, Status.PASS), (4096, Status.PASS), (4095, Status.FAIL), (1024, Status.FAIL)]
)
def test_low_limit_fails_as_info(soft: int | None, status: Status) -> None:
    result = compute_check(open_files, host(limits=(ResourceLimit(name="nofile", soft=soft, hard=None),)))
    assert (result.status, result.severity) == (status, Severity.INFO)


@pytest.mark.parametrize(
    ("hard", "command"), [(1048576, "ulimit -n 4096"), (2048, "sudo prlimit --pid $$ --nofile=4096:4096")]
)
def test_soft_limit_is_raised_up_to_the_hard_limit(hard: int, command: str) -> None:
    found = host(limits=(ResourceLimit(name="nofile", soft=1024, hard=hard),))
    finding = compute_check(open_files, found).findings[0].finding
    assert (finding.remedy.commands, finding.rollback.commands) == ((command,), ("ulimit -n 1024",))


def test_unread_limit_is_unknown() -> None:
    assert compute_check(open_files, host(limits=())).status is Status.UNKNOWN


@pytest.mark.parametrize(("soft", "observed"), [(None, "unlimited"), (4096, "4096")])
def test_limit_is_shown(soft: int | None, observed: str) -> None:
    result = compute_check(open_files, host(limits=(ResourceLimit(name="nofile", soft=soft, hard=None),)))
    assert result.evidence[0].observed == observed


@pytest.mark.parametrize(("hard", "shown"), [(None, "1024 (hard limit unlimited)"), (2048, "1024 (hard limit 2048)")])
def test_hard_limit_is_shown(hard: int | None, shown: str) -> None:
    result = compute_check(open_files, host(limits=(ResourceLimit(name="nofile", soft=1024, hard=hard),)))
    assert result.findings[0].finding.observed == shown
