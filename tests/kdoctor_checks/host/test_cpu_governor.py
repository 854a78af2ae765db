from __future__ import annotations

import pytest

from helpers.facts import host
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.host.cpu_governor import cpu_governor


@pytest.mark.parametrize(
    ("governors", "status"),
    [
        (("performance",), Status.PASS),
        (("schedutil",), Status.PASS),
        (("performance", "powersave"), Status.FAIL),
        (("conservative",), Status.FAIL),
        ((), Status.SKIP),
        (None, Status.UNKNOWN),
    ],
)
def test_slow_governor_fails_as_info(governors: tuple[str, ...] | None, status: Status) -> None:
    result = compute_check(cpu_governor, host(cpu_governors=governors))
    assert (result.status, result.severity) == (status, Severity.INFO)


def test_rollback_restores_the_recorded_governor() -> None:
    finding = compute_check(cpu_governor, host(cpu_governors=("powersave",))).findings[0].finding
    assert finding.rollback.commands == ("sudo cpupower frequency-set -g powersave",)


def test_checklist_sets_the_slow_governors() -> None:
    assert compute_check(cpu_governor, host(cpu_governors=("ondemand",)), slow=("ondemand",)).status is Status.FAIL
