from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import log
from kdoctor.facts import KernelLog
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.driver.kernel_log import kernel_log


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"complete": None}, Status.PASS),
        ({"complete": False}, Status.UNKNOWN),
        ({"lines": 0}, Status.UNKNOWN),
    ],
)
def test_log_since_boot_passes(change: dict[str, Any], status: Status) -> None:
    result = compute_check(kernel_log, log(**change))
    assert (result.status, result.severity) == (status, Severity.WARNING)


def test_unread_log_is_unknown_with_the_reason() -> None:
    why = "the kernel log may not be read by this user: Permission denied (kernel.dmesg_restrict)"
    result = compute_check(kernel_log, missing={KernelLog: why})
    assert (result.status, result.reason) == (Status.UNKNOWN, why)
