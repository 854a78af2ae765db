from __future__ import annotations

import pytest

from helpers.facts import gpus, log, logged
from kdoctor.facts import KernelLog
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.application_xids import application_xids


def test_log_without_xids_passes() -> None:
    assert compute_check(application_xids, gpus(2), log()).status is Status.PASS


@pytest.mark.parametrize("code", [13, 31, 43, 45])
def test_program_error_is_a_note(code: int) -> None:
    result = compute_check(application_xids, gpus(2), logged(f"NVRM: Xid (PCI:0000:20:00): {code}, pid=7, name=train"))
    assert (result.status, result.severity) == (Status.FAIL, Severity.INFO)
    assert result.findings[0].finding.subject == "GPU 1 (0000:20:00.0)"


@pytest.mark.parametrize("code", [48, 63, 79, 154])
def test_faults_pass(code: int) -> None:
    assert compute_check(application_xids, gpus(2), logged(f"NVRM: Xid (PCI:0000:20:00): {code}")).status is Status.PASS


def test_unread_log_is_skipped() -> None:
    assert compute_check(application_xids, gpus(2), missing={KernelLog: "no"}).status is Status.SKIP
