"""Every code of NVIDIA's tables is judged by its bucket, and any other code is unknown."""

from dataclasses import dataclass

import pytest

from helpers.cases import cases
from helpers.facts import bus_id, gpu, gpus, logged, pci
from kdoctor.engine.report import Result
from kdoctor.facts import KernelLogEvent
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks import _catalog
from kdoctor_checks._xids import NVLINK_5, OF_REPAIRS, XID_RECOVERY, meaning
from kdoctor_checks.gpu.application_xids import application_xids
from kdoctor_checks.gpu.kernel_log import kernel_log
from kdoctor_checks.gpu.logged_remapping import logged_remapping
from kdoctor_checks.topology.nvswitch_errors import nvswitch_errors
from kdoctor_checks.topology.nvswitch_warnings import nvswitch_warnings

ADDRESS = bus_id(1)
RESET = f"sudo nvidia-smi --gpu-reset -i {ADDRESS}"

# The catalog's page defines the buckets: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
OF_PROGRAMS = {"IGNORE", "RESTART_APP", "WORKFLOW_XID_45"}
COMMANDS = {
    "RESET_GPU": (RESET,),
    "WORKFLOW_XID_48": (RESET,),
    "WORKFLOW_NVLINK_ERR": (RESET,),
    "CHECK_UVM": (RESET,),
    "RESTART_BM": ("sudo reboot",),
    "RESTART_VM": ("sudo reboot",),
    "CHECK_MECHANICALS": (),
    "UPDATE_SWFW": (),
    "CONTACT_SUPPORT": (),
}
"""The commands of the fix for the buckets after which no job may start."""
BY_LINE = {"WORKFLOW_NVLINK5_ERR", "XID_154"}
INVENTED = [173, 999]
NVLINK_CODE = min(NVLINK_5)


@dataclass(frozen=True, kw_only=True)
class Judged:
    failures: Result
    programs: Result
    repairs: Result


def judged(code: int, text: str = "pid=7, name=python") -> Judged:
    """What the checks make of one line."""
    log = logged(f"[ 100.000000] NVRM: Xid (PCI:{ADDRESS[:-2]}): {code}, {text}")
    results = [compute_check(check, gpus(4), pci(4), log) for check in (kernel_log, application_xids, logged_remapping)]
    return Judged(failures=results[0], programs=results[1], repairs=results[2])


ROWS = sorted(_catalog.xids().values(), key=lambda row: row.code)


def test_catalog_is_complete() -> None:
    assert [row.code for row in ROWS] == list(range(1, 173))
    assert {row.now for row in ROWS} == {*OF_PROGRAMS, *COMMANDS, *BY_LINE, ""}


OF_DISPLAYS = {15, 16, 19, 56, 81, *range(112, 119)}
"""Named after scanning, blanking, VGA, heads, cursors and links of displays; unused in the catalog."""


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.now in COMMANDS and row.code not in OF_DISPLAYS], ids=lambda row: str(row.code)
)
def test_code_that_needs_more_than_a_program_fails_with_the_fix_of_its_bucket(row: _catalog.Xid) -> None:
    found = judged(row.code)
    (failure,) = found.failures.findings
    assert (found.failures.status, found.failures.severity) == (Status.FAIL, Severity.ERROR)
    assert failure.finding.subject == gpu(1).subject
    assert f"Xid {row.code}" in failure.finding.observed
    assert failure.finding.remedy.commands == COMMANDS[row.now]
    assert found.programs.status is Status.PASS


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.now in OF_PROGRAMS or row.code in OF_DISPLAYS], ids=lambda row: str(row.code)
)
def test_code_of_a_program_or_a_display_stops_no_job(row: _catalog.Xid) -> None:
    found = judged(row.code)
    assert found.failures.status is Status.PASS
    reports = found.repairs if row.code in OF_REPAIRS else found.programs
    assert reports.status is (Status.PASS if row.code in OF_REPAIRS else Status.FAIL)
    assert f"Xid {row.code}" in str(reports.findings or reports.evidence)


@pytest.mark.parametrize("code", [*(row.code for row in ROWS if not row.now), *INVENTED])
def test_unexplained_code_is_unknown(code: int) -> None:
    found = judged(code)
    assert (found.failures.status, found.programs.status) == (Status.UNKNOWN, Status.UNKNOWN)
    assert f"Xid {code}" in (found.failures.reason or "")
    assert [item.subject for item in found.failures.unjudged] == [gpu(1).subject]


@pytest.mark.parametrize("code", sorted(NVLINK_5))
@cases(
    ("SAW_MVB Fatal XC0", Status.FAIL), ("RLW_REMAP Nonfatal XC0", Status.PASS), ("TLW_RX Non-fatal XC0", Status.PASS)
)
def test_line_of_nvlink_5_says_whether_it_is_fatal(code: int, text: str, status: Status) -> None:
    assert judged(code, f"{text} i0 Link 00 (0x00000001 0x00000002)").failures.status is status


@pytest.mark.parametrize("code", sorted(NVLINK_5 - {149}))
def test_line_of_nvlink_5_without_severity_and_numbers_is_unknown(code: int) -> None:
    assert judged(code).failures.status is Status.UNKNOWN


@cases((149, Status.FAIL, (RESET,)), (31, Status.PASS, ()), (48, Status.FAIL, (RESET,)), (999, Status.PASS, ()))
def test_xid_that_names_its_cause_is_judged_by_it(cause: int, status: Status, commands: tuple[str, ...]) -> None:
    found = judged(45, f"pid=7, name=python3, Ch 00000001 caused by previous Xid {cause}").failures
    assert found.status is status
    assert [command for item in found.findings for command in item.finding.remedy.commands] == list(commands)
    assert all(item.finding.brief.startswith(f"Xid {cause} ") for item in found.findings)


@pytest.mark.parametrize("row", _catalog.nvlink_errors(), ids=lambda row: f"{row.xid} {row.subcode} {row.status:x}")
def test_decoded_error_of_nvlink_5(row: _catalog.NvLinkError) -> None:
    subcode = row.subcode.split("/")[-1]
    status = judged(row.xid, f"{subcode} XC0 i0 Link 00 (0x00000001 0x{row.status:08x} 0x00000000)").failures.status
    alike = {
        other.now for other in _catalog.nvlink_errors() if other.subcode == row.subcode and other.status == row.status
    }
    if len(alike) == 1:
        assert status is (Status.FAIL if row.now == "RESET_GPU" else Status.PASS)


@cases(
    ("None", Status.PASS, None),
    ("GPU Reset Required", Status.FAIL, RESET),
    ("Drain and Reset", Status.FAIL, RESET),
    ("Drain P2P", Status.FAIL, RESET),
    ("Node Reboot Required", Status.FAIL, "sudo reboot"),
    ("something new", Status.FAIL, "sudo reboot"),
)
def test_recovery_action_of_xid_154(words: str, status: Status, command: str | None) -> None:
    found = judged(XID_RECOVERY, f"GPU recovery action changed from 0x0 (None) to 0x1 ({words})").failures
    assert found.status is status
    assert [item.finding.remedy.commands for item in found.findings] == ([(command,)] if command else [])


def test_recovery_action_sums_up_the_other_xids() -> None:
    lines = (
        f"NVRM: Xid (PCI:{ADDRESS[:-2]}): 62, 323f0f30 0000c3d8",
        f"NVRM: Xid (PCI:{ADDRESS[:-2]}): 154, GPU recovery action changed to 0x2 (Node Reboot Required)",
    )
    (found,) = compute_check(kernel_log, gpus(4), pci(4), logged(*lines)).findings
    assert found.finding.remedy.commands == ("sudo reboot",)


def test_mig_instance_is_named() -> None:
    log = logged(f"NVRM: Xid (PCI:{ADDRESS[:-2]} GPU-I:05): 95, pid=7, Uncontained: LTC TAG (0x2,0x0)")
    (found,) = compute_check(kernel_log, gpus(4), pci(4), log).findings
    assert "MIG instance 05" in found.finding.observed


SXIDS = sorted(_catalog.sxids().values(), key=lambda row: row.code)


def sxid(code: int, text: str) -> tuple[Result, Result]:
    log = logged(f"[ 100.000000] nvidia-nvswitch3: SXid (PCI:0000:86:00.0): {code}, {text}")
    first, second = (compute_check(check, gpus(4), log) for check in (nvswitch_errors, nvswitch_warnings))
    return first, second


@pytest.mark.parametrize("row", SXIDS, ids=lambda row: str(row.code))
def test_sxid_is_judged_by_its_section_of_the_guide(row: _catalog.SXid) -> None:
    errors, warnings = sxid(row.code, "Link 32 a message")
    is_fatal = row.severity.endswith("fatal") and row.severity != "non-fatal"
    if row.code != 10003:
        assert errors.status is (Status.FAIL if is_fatal else Status.PASS)
        assert warnings.status is (Status.PASS if is_fatal else Status.FAIL)
    else:
        assert errors.status is Status.FAIL
    assert (errors.severity, warnings.severity) == (Severity.ERROR, Severity.INFO)


@cases(("Fatal, Link 32", Status.FAIL), ("Non-fatal, Link 32", Status.UNKNOWN), ("", Status.UNKNOWN))
def test_sxid_that_the_guide_does_not_list(text: str, status: Status) -> None:
    errors, warnings = sxid(99999, text)
    assert errors.status is status
    assert (warnings.status is Status.UNKNOWN) is (status is Status.UNKNOWN)


def test_recovery_that_is_over_leaves_the_fix_to_the_other_xids() -> None:
    lines = (
        f"NVRM: Xid (PCI:{ADDRESS[:-2]}): 62, 323f0f30 0000c3d8",
        f"NVRM: Xid (PCI:{ADDRESS[:-2]}): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
    )
    (found,) = compute_check(kernel_log, gpus(4), pci(4), logged(*lines)).findings
    assert found.finding.remedy.commands == (RESET,)


@cases((NVLINK_CODE, "NETIR_LINK_EVT", True), (79, "NETIR_LINK_EVT", False))
def test_only_errors_of_nvlink_5_have_a_second_name(code: int, text: str, *, names_it: bool) -> None:
    event = KernelLogEvent(kind="xid", code=code, text=f"NVRM: Xid (PCI:{ADDRESS[:-2]}): {code}, {text} Fatal")
    assert (text in meaning(event)) is names_it
