from __future__ import annotations

import pytest

from helpers.facts import host
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.host.huge_pages import huge_pages


@pytest.mark.parametrize(
    ("mode", "status"),
    [("always", Status.PASS), ("madvise", Status.PASS), ("never", Status.FAIL), (None, Status.UNKNOWN)],
)
def test_mode_never_fails_as_info(mode: str | None, status: Status) -> None:
    result = compute_check(huge_pages, host(transparent_hugepages=mode))
    assert (result.status, result.severity) == (status, Severity.INFO)


def test_checklist_sets_the_accepted_modes() -> None:
    finding = compute_check(huge_pages, host(transparent_hugepages="madvise"), accepted=("always",)).findings[0].finding
    assert finding.remedy.commands == ("echo always | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",)
