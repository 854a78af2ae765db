from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import log, logged
from kdoctor.facts import KernelLog
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.driver.kernel_log import kernel_log


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"complete": None}, Status.UNKNOWN),
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


def test_value_says_clean_only_of_a_complete_log_without_events() -> None:
    def value(log: KernelLog) -> str:
        (evidence,) = compute_check(kernel_log, log).evidence
        return evidence.brief

    clean = logged("usb 1-1: new device")
    assert value(clean) == "kernel log clean since boot"
    assert value(logged("NVRM: Xid (PCI:0000:20:00): 79, pid=1")) == ""
