from __future__ import annotations

import pytest

from helpers.facts import log, logged
from kdoctor.facts import KernelLog
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.host.kernel_errors import kernel_errors

CORRECTED = "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0)"


@pytest.mark.parametrize(
    "line",
    [
        "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0)",
        "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: b200000000070f0f",
        "{1}[Hardware Error]: event severity: fatal",
        "Kernel panic - not syncing: Fatal hardware error!",
        "BUG: unable to handle page fault for address: ffff888000000000",
    ],
)
def test_crash_and_uncorrected_error_warn(line: str) -> None:
    result = compute_check(kernel_errors, logged(f"[   12.500000] {line}"))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)


@pytest.mark.parametrize(
    ("times", "status"), [(1, Status.PASS), (10, Status.PASS), (11, Status.FAIL), (900, Status.FAIL)]
)
def test_corrected_errors_in_number_warn(times: int, status: Status) -> None:
    assert compute_check(kernel_errors, logged(*[CORRECTED] * times)).status is status


@pytest.mark.parametrize(
    "line",
    [
        "EDAC MC: Ver: 3.0.0",
        "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0: DEV 0000:64:0a.0",
        "EDAC amd64: ECC disabled in the BIOS or no ECC capability, module will not load.",
        "mce: CPU0: Thermal monitoring enabled (TM1)",
        "[Hardware Error]: Corrected error, no action required.",
    ],
)
def test_harmless_lines_pass(line: str) -> None:
    assert compute_check(kernel_errors, logged(line)).status is Status.PASS


def test_without_a_log_it_does_not_pass() -> None:
    assert compute_check(kernel_errors, missing={KernelLog: "no"}).status is Status.SKIP
    assert compute_check(kernel_errors, log(lines=0)).status is Status.SKIP
