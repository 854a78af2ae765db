"""Every code of NVIDIA's catalog is judged as the catalog's immediate action says, and any other code is unknown.

Source of the expected classes: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, as of 2026-11-22.
"""

from __future__ import annotations

import pytest

from helpers.facts import bus_id, gpu, gpus, logged, pci
from kdoctor.engine.report import Result
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks._xids import FAILURES, TOLERATED, XID_RECOVERY, XID_REMAPPING
from kdoctor_checks.gpu.application_xids import application_xids
from kdoctor_checks.gpu.kernel_log import kernel_log

RESET = [46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158]
OTHER_FAILURES = [48, 54, 74, 79, 94, 149, 151]
APPLICATIONS = [8, 11, 13, 25, 31, 32, 39, 60, 68, 69, 80, 82, 86, 96, 105, 126, 135, 139]
IGNORED = [14, 37, 43, 44, 45, 66, 92, 93, 106, 121, 137, 141, 152, 157, 160, 161]
UNUSED = [1, 12, 33, 61, 90, 112, 125, 138]
WITHOUT_ACTION = [142, 159, 162, 167, 171]
INVENTED = [173, 999]


NVLINK_5 = [144, 145, 146, 147, 148, 150]


def judged(code: int, text: str = "pid=7, name=python") -> tuple[Result, Result]:
    """What gpu.kernel-log and gpu.application-xids make of one line."""
    log = logged(f"[ 100.000000] NVRM: Xid (PCI:{bus_id(1)[:-2]}): {code}, {text}")
    failures, applications = (compute_check(check, gpus(4), pci(4), log) for check in (kernel_log, application_xids))
    return failures, applications


@pytest.mark.parametrize("code", [*RESET, *OTHER_FAILURES])
def test_code_that_needs_a_reset_or_more_fails(code: int) -> None:
    failures, applications = judged(code)
    assert [item.finding.subject for item in failures.findings] == [gpu(1).subject]
    assert failures.status is Status.FAIL
    assert applications.status is Status.PASS


@pytest.mark.parametrize("code", [*APPLICATIONS, *IGNORED])
def test_code_of_a_program_is_for_information(code: int) -> None:
    failures, applications = judged(code)
    assert failures.status is Status.PASS
    assert applications.status is Status.FAIL
    assert applications.severity is Severity.INFO


@pytest.mark.parametrize("code", [*UNUSED, *WITHOUT_ACTION, *INVENTED])
def test_unexplained_code_is_unknown(code: int) -> None:
    failures, applications = judged(code)
    assert (failures.status, applications.status) == (Status.UNKNOWN, Status.UNKNOWN)
    assert f"Xid {code}" in (failures.reason or "")
    assert [item.subject for item in failures.unjudged] == [gpu(1).subject]


@pytest.mark.parametrize("code", NVLINK_5)
@pytest.mark.parametrize(
    ("text", "status"),
    [("SAW_MVB Fatal XC0", Status.FAIL), ("RLW_REMAP Nonfatal XC0", Status.PASS), ("pid=7", Status.UNKNOWN)],
)
def test_line_of_nvlink_5_says_whether_it_is_fatal(code: int, text: str, status: Status) -> None:
    assert judged(code, f"{text} i0 Link 00 (0x00000001 0x00000002)")[0].status is status


def test_every_code_of_the_catalog_has_one_class() -> None:
    tables = [set(FAILURES), set(NVLINK_5), set(TOLERATED), {XID_REMAPPING, XID_RECOVERY}]
    assert sum(map(len, tables)) == len(set.union(*tables))
    assert max(set.union(*tables)) <= 172
