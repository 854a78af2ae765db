from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import bus_id, gpu, gpus, log, logged, lost_gpu, no_driver, pci
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpus, KernelLog, KernelLogEvent, NvLink, PciDevices
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.kernel_log import kernel_log


def judged(*facts: FactGroup) -> Result:
    return compute_check(kernel_log, gpus(4), pci(4), *facts)


def xid(code: int, rest: str = "pid=1, name=python", index: int = 1) -> KernelLog:
    return logged(f"[ 12.5] NVRM: Xid (PCI:{bus_id(index)[:-2]}): {code}, {rest}")


def test_log_without_failures_passes_with_its_completeness() -> None:
    result = judged(log())
    assert (result.status, result.severity) == (Status.PASS, Severity.ERROR)
    assert "2048 lines of /dev/kmsg, complete" in result.evidence[0].observed


@pytest.mark.parametrize("changes", [{"complete": False}, {"complete": None}, {"lines": 0}])
def test_log_that_does_not_reach_back_to_the_boot_does_not_pass(changes: dict[str, Any]) -> None:
    result = judged(log(**changes))
    assert result.status is Status.SKIP
    assert "driver.kernel-log" in (result.reason or "")


@pytest.mark.parametrize("code", [48, 64, 74, 79, 95, 119, 120, 149])
def test_failure_xid_fails_and_names_gpu(code: int) -> None:
    result = judged(xid(code))
    assert result.status is Status.FAIL
    assert result.findings[0].finding.subject == "GPU 1 (0000:20:00.0)"
    assert f"Xid {code} (" in result.findings[0].finding.observed


@pytest.mark.parametrize("code", [13, 31, 43, 45, 63, 94])
def test_other_xids_pass(code: int) -> None:
    assert judged(xid(code)).status is Status.PASS


@pytest.mark.parametrize(
    ("action", "status"), [("None", Status.PASS), ("GPU Reset Required", Status.FAIL), ("Node Reboot", Status.FAIL)]
)
def test_recovery_action_fails_unless_it_is_none(action: str, status: Status) -> None:
    rest = f"pid=1, GPU recovery action changed from 0x0 (None) to 0x1 ({action})"
    assert judged(xid(154, rest)).status is status


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: GPU 0000:20:00.0: GPU has fallen off the bus.",
        "NVRM: GPU 0000:20:00.0: RmInitAdapter failed! (0x62:0x40:2421)",
        "NVRM: GPU0 _kgspRpcRecvPoll: 0000:20:00.0 GSP RPC timeout",
    ],
)
def test_failures_without_xid_fail(line: str) -> None:
    assert judged(logged(line)).status is Status.FAIL


def test_each_gpu_has_one_finding_with_all_events() -> None:
    lines = [f"NVRM: Xid (PCI:0000:20:00): {code}, pid=1" for code in (48, 95, 95)]
    result = judged(logged(*lines, "NVRM: Xid (PCI:0000:30:00): 119, pid=1"))
    observed = {item.finding.subject: item.finding.observed for item in result.findings}
    assert set(observed) == {"GPU 1 (0000:20:00.0)", "GPU 2 (0000:30:00.0)"}
    assert re.match(r"Xid 48 \(.*\), Xid 95 \(.*\) x2;", observed["GPU 1 (0000:20:00.0)"])


def explained(result: Result) -> dict[str, tuple[str, ...]]:
    return {item.finding.subject: item.finding.explained_by for item in result.findings}


def test_failure_of_lost_gpu_is_explained_by_gpu_responding() -> None:
    found = gpus(4, gpu(0), lost_gpu(1), gpu(2), gpu(3))
    assert explained(judged(xid(79), found)) == {f"GPU 1 ({bus_id(1)})": ("gpu.responding",)}
    assert explained(judged(xid(79, index=2), found)) == {f"GPU 2 ({bus_id(2)})": ()}


def test_failure_of_unlisted_gpu_is_explained_by_gpu_visible_to_driver() -> None:
    found = gpus(3, gpu(0), gpu(2), gpu(3))
    assert explained(judged(xid(79), found)) == {f"GPU at {bus_id(1)}": ("gpu.visible-to-driver",)}


DOWN = (NvLink(index=0, active=False),)


@pytest.mark.parametrize(
    ("codes", "state", "explained_by"),
    [
        ((48, 95), {"ecc_uncorrected_volatile": 1}, ("gpu.ecc-errors",)),
        ((48, 95), {}, ()),
        ((64,), {"remapped_rows_failure": True}, ("gpu.row-remapping",)),
        ((48, 119), {"ecc_uncorrected_volatile": 1}, ()),
        ((74,), {"nvlinks": DOWN}, ("topology.nvlink", "topology.nvlink-direct")),
        ((154,), {"recovery_action": "reset"}, ("gpu.recovery-action",)),
        ((119,), {"recovery_action": "reset"}, ()),
    ],
)
def test_failure_is_explained_by_the_state_of_the_gpu(
    codes: tuple[int, ...], state: dict[str, Any], explained_by: tuple[str, ...]
) -> None:
    named = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
    lines = [f"NVRM: Xid (PCI:{bus_id(1)[:-2]}): {code}, {named if code == 154 else 'pid=1'}" for code in codes]
    found = gpus(4, gpu(0), gpu(1, **state), gpu(2), gpu(3))
    assert explained(judged(logged(*lines), found)) == {f"GPU 1 ({bus_id(1)})": explained_by}


def test_log_without_a_gpu_of_the_driver_does_not_pass() -> None:
    assert compute_check(kernel_log, logged("usb 1-1: new device"), *no_driver()).status is Status.SKIP
    assert compute_check(kernel_log, xid(119), *no_driver()).status is Status.FAIL
    alone = compute_check(kernel_log, logged("usb 1-1: new device"))
    assert alone.status is Status.PASS


def test_log_without_gpus_names_address() -> None:
    result = compute_check(kernel_log, xid(119), missing={Gpus: "not in the log", PciDevices: "not in the log"})
    assert [item.finding.subject for item in result.findings] == ["GPU at 0000:20:00.0"]


def test_unread_log_is_skipped() -> None:
    result = compute_check(kernel_log, gpus(4), pci(4), missing={KernelLog: "may not be read"})
    assert result.status is Status.SKIP
    assert "driver.kernel-log" in (result.reason or "")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        # Recorded with an RTX 5090, an eGPU and a V100 that nouveau owned.
        (
            "NVRM: nvAssertOkFailedNoLog: Reset required [NV_ERR_RESET_REQUIRED] (0x62) @ kernel_channel.c:2874",
            "reboot",
        ),
        ("NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot", "reboot"),
        ("NVRM: The NVIDIA probe routine was not called for 3 device(s).", "modprobe -r nouveau"),
    ],
)
def test_failure_without_xid_fails(line: str, command: str) -> None:
    (found,) = judged(logged(f"[ 12.5] {line}")).findings
    assert found.finding.remedy.commands[0] == f"sudo {command}"


@pytest.mark.parametrize(
    "line",
    [
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
        "NVRM: an assertion failed somewhere",
        "NVRM: Xid (a form that is not known)",
        "nouveau 0000:01:00.0: fifo: fault 01 [VIRT_WRITE] failed",
    ],
)
def test_unknown_message_of_a_driver_is_unknown(line: str) -> None:
    result = judged(logged(f"[ 12.5] {line}"))
    assert result.status is Status.UNKNOWN
    assert line in (result.reason or "")


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.105.08",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 239",
        "nvidia-uvm: Loaded the UVM driver, major device number 511.",
        "nouveau 0000:01:00.0: NVIDIA GP107 (137000a1)",
    ],
)
def test_message_of_a_start_passes(line: str) -> None:
    assert judged(logged(f"[ 12.5] {line}")).status is Status.PASS


def event(kind: Any, bus_id: str | None = None, code: int | None = None) -> KernelLogEvent:
    return KernelLogEvent(kind=kind, bus_id=bus_id, code=code, text=f"{kind} {code}")


ADDRESS = bus_id(1)
NAMELESS = "a GPU without address in the log"


@pytest.mark.parametrize(
    ("events", "subjects"),
    [
        ([event("uvm-fatal")], ["kernel log"]),
        ([event("xid", code=79)], [NAMELESS]),
        ([event("uvm-fatal"), event("xid", code=79)], [NAMELESS]),
        ([event("fallen-off-the-bus", ADDRESS)], [gpu(1).subject]),
        # Those without an address belong to the only GPU that failed.
        ([event("xid", ADDRESS, 79), event("uvm-fatal")], [gpu(1).subject]),
        ([event("fallen-off-the-bus", ADDRESS), event("xid", ADDRESS, 79), event("uvm-fatal")], [gpu(1).subject]),
        ([event("fallen-off-the-bus", ADDRESS), event("uvm-fatal")], [gpu(1).subject, "kernel log"]),
        ([event("xid", ADDRESS, 79), event("xid", bus_id(2), 79), event("uvm-fatal")],
         [gpu(1).subject, gpu(2).subject, "kernel log"]),
    ],
)  # fmt: skip
def test_failures_are_reported_about_their_gpu(events: list[KernelLogEvent], subjects: list[str]) -> None:
    assert [item.finding.subject for item in judged(log(*events)).findings] == subjects


def test_mismatch_of_versions_counts_unless_the_driver_was_read() -> None:
    mismatch = log(event("version-mismatch"))
    assert judged(mismatch).findings == ()
    (found,) = compute_check(kernel_log, mismatch, pci(4), missing={Gpus: "a log alone"}).findings
    assert found.finding.explained_by == ("driver.library-matches-module", "driver.loaded")
