"""What is recognized by its words in any line: documented forms, invented machines."""

from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import TABLE as GPUS
from helpers.kdoctor_recordings.dumps import group, imported, imported_gpus
from kdoctor.errors import UsageError
from kdoctor.facts import KernelLog
from kdoctor_recordings.facts import Diagnostics
from kdoctor_recordings.formats import messages

STARTED = "Jan 05 14:45:28 n1 systemd[1]: Started nvidia-fabricmanager.service - NVIDIA fabric manager service."
UNIT = "nvidia-fabricmanager.service - NVIDIA fabric manager service\n     Loaded: loaded (/usr/lib/a.service; enabled)"
STOPPED = 'Jan 05 15:32:16 n1 nvidia-fabricmanager-start.sh[20411]: Stopped "Nvidia Fabric Manager"'
FAILED = (
    "Jan 05 15:32:16 n1 systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE"
)
IDLE = "Jan 05 15:32:15 n1 nvidia-fabricmanager-start.sh[7]: query of NVSwitch devices failed: [NV_WARN_NOTHING_TO_DO]"
DIFFERS = (
    "Jan 05 15:32:15 n1 nv-fabricmanager[7]: fabric manager NVIDIA GPU driver interface version 550.1 don't match with "
    "driver version 550.2. Please update with matching NVIDIA driver package."
)
ASKED = "* `Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*) exist.`"
REGISTERED = "Jan 05 05:33:40 n1 nvidia-persistenced[9]: device 0000:3d:00.0 - registered"
WATCHED = "ERROR [1:2] [[Health]] Detected a {} in health system {}: 'Detected {} in GPU {}. Look at it.'"
TABLE = """\
Health Monitor Report
+---------------------------+----------------------------------------------------------+
| Overall Health            | Warning                                                  |
+===========================+==========================================================+
| GPU ID: 3                 | Warning                                                  |
|                           | PCIe system: Warning - Detected more than 8 PCIe replays |
|                           | per minute for GPU 3: 13                                 |
+---------------------------+----------------------------------------------------------+
"""


@cases(
    ((STARTED,), "pass"),
    ((FAILED,), "fail"),
    ((STARTED, STOPPED), "fail"),
    (("   Main PID: 7 (nv-fabricmanage)",), "pass"),
    (("  Process: 7 ExecStart=/usr/bin/nv-fabricmanager -c /etc/fm.cfg (code=exited, status=1/FAILURE)",), "fail"),
    ((FAILED, STARTED), "pass"),
    ((UNIT, "     Active: failed (Result: signal) since Tue 2026-02-17 01:12:11 UTC"), "fail"),
    ((STARTED, UNIT, "     Active: inactive (dead)"), "fail"),
    ((UNIT, "     Active: active (running) since Tue 2026-02-17 01:12:11 UTC"), "pass"),
    (('{"reason": "H100 checked fabric state; fabric manager found but not active"}',), "fail"),
    (("`n1: fabric manager config file item: LOG_LEVEL has an invalid value`.",), "fail"),
    ((IDLE, FAILED), "pass"),  # no NVSwitch, so there is nothing to manage
)
def test_last_state_of_the_fabric_manager_counts(tmp_path: Path, lines: tuple[str, ...], status: str) -> None:
    (found,) = group(imported(tmp_path, "".join(f"{line}\n" for line in lines)).facts, Diagnostics).results
    assert (found.tool, found.status) == ("fabric manager", status)


@cases(((DIFFERS, FAILED),), ((DIFFERS,),))
def test_differing_versions_are_why_the_fabric_manager_failed(tmp_path: Path, lines: tuple[str, ...]) -> None:
    (found,) = group(imported(tmp_path, "".join(f"{line}\n" for line in lines)).facts, Diagnostics).results
    assert (found.status, found.message, "version" in found.test) == ("fail", DIFFERS, True)


@cases(
    (ASKED, "warn"),
    ("Jan 05 05:33:40 n1 systemd[1]: nvidia-persistenced.service: Failed with result 'exit-code'.", "warn"),
    ("Jan 05 05:33:40 n1 systemd[1]: Failed to start nvidia-persistenced.service - a daemon.", "warn"),
    (f"{REGISTERED}\nJan 05 05:33:40 n1 nvidia-persistenced[9]: Received signal 15", "warn"),
    ("Jan 05 05:33:40 n1 systemd[1]: Started NVIDIA Persistence Daemon.", "pass"),
    (REGISTERED, "pass"),
    ("        License Status                    : Unlicensed (Restricted)", "fail"),
    ("<license_status>Unlicensed (Restricted)</license_status>", "fail"),
    ("        License Status                    : Licensed (Expiry: 2027-1-1 0:0:0 GMT)", "pass"),
    ("Apr 10 00:41:32 n1 nvidia-gridd[9]: Valid GRID license not found. Restricting the features.", "fail"),
    ("Apr 10 00:41:32 n1 nvidia-gridd[9]: License acquired successfully. (Info: 192.0.2.1)", "pass"),
    ("Apr 10 00:41:32 n1 nvidia-gridd[9]: Licensing not supported for GPUs in the system", "pass"),
    ("ErrorCode:DCGM_FR_NVLINK_DOWN GPU:3 PCI:0000:9d:00.0 Link is down", "fail"),
    ("ErrorCode:DCGM_FR_CLOCK_THROTTLE_THERMAL", "warn"),
    ("`ERROR:  nhc:  Health check failed:  check_nvlink_status: GPU:3 has nvlinks inactive", "fail"),
    ('{"errorCode": ["DCGM_FR_ROW_REMAP_FAILURE"], "gpu": 1, "isFatal": false}', "warn"),
)
def test_services_and_codes_in_any_line(tmp_path: Path, line: str, status: str) -> None:
    (found,) = group(imported(tmp_path, f"a sentence\n{line}\n").facts, Diagnostics).results
    assert (found.subject, found.status) == ("GPU 3" if "GPU:3" in line else "node", status)


def test_sentence_of_json_is_the_message(tmp_path: Path) -> None:
    line = '{"level": "info", "error_code": "DCGM_FR_NVLINK_DOWN", "event_message": "NVLink 4 of GPU 0 is down"}'
    (found,) = group(imported(tmp_path, f"a sentence\n{line}\n").facts, Diagnostics).results
    assert found.message == "NVLink 4 of GPU 0 is down"


@cases(
    ("XID 79(GPU has fallen off the bus) detected on PCI:0000:ae:00", {(79, "0000:ae:00.0")}),
    (
        "NVRM: Xid (PCI:0000:ae:00): 31, pid=9\nXid 31 PCI:0000:af:00 pid=7\nXid 31 PCI:0000:ae:00 pid=9",
        {(31, "0000:ae:00.0"), (31, "0000:af:00.0")},
    ),
    ("19:15:34  Xid 31 PCI:0000:ae:00 pid=477448 ... UNRECOGNIZED_CLIENT ...", {(31, "0000:ae:00.0")}),
    ("XID 149.0 (err status 0x0) NETIR Error detected on GPU PCI:0000:ae:00", {(149, "0000:ae:00.0")}),
    ("NVRM: Xid (PCI:0000:ae:00): 45, caused by Xid 149 PCI:0000:af:00", {(45, "0000:ae:00.0")}),
    ("Training died with Xid 79 on the third node.", {(79, None)}),
    ("the machine shows Xids (145 and 149) again", {(145, None), (149, None)}),
    ("GPU PCI 0000:9C:00 is the one:\n- `Xid 48 / 171`: memory\n", {(48, "0000:9c:00.0"), (171, "0000:9c:00.0")}),
    ("XidCriticalError: Xid=69 on Device=GPU-0a1b, the device will go unhealthy", {(69, None)}),
    ('XidCriticalError     True    Mon, 23 Jun 2025   {"31":true}', {(31, None)}),
    ('DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-0a1b"} 43', {(43, None)}),
    ("no Xid 48, but Xid error code 119", {(119, None)}),
    ("ErrorCode:DCGM_FR_XID_ERROR GPU:4 PCI:0000:c4:00.0 Detected XID 31", {(31, "0000:c4:00.0")}),
    ('DCGM_FI_DEV_XID_ERRORS{err_code="45", err_msg="Preemptive cleanup", job="exporter"}', {(45, None)}),
    ("the GPU at PCI:0000:3b:00 has fallen off the bus again", {(None, "0000:3b:00.0")}),
    # The driver says it itself, and where.
    ("I get Xid 79:\nNVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n", {(79, "0000:3b:00.0")}),
)
def test_xid_of_a_sentence_has_the_only_address_that_is_named(tmp_path: Path, text: str, found: object) -> None:
    facts = imported(tmp_path, f"{text}\n").facts
    log = group(facts, KernelLog)
    assert {(event.code, event.bus_id) for event in log.events} == found
    assert log.events[0].text in text
    assert Diagnostics not in facts  # the Xid says whether it is the hardware


def test_recovery_action_of_a_sentence_is_read(tmp_path: Path) -> None:
    log = group(imported(tmp_path, "it ends with Xid 154 (Node Reboot Required)\n").facts, KernelLog)
    assert [event.recovery for event in log.events] == ["Node Reboot Required"]


@pytest.mark.parametrize("text", ["There is no Xid 79.", "dhcp xid 0x79", "Xid 0", "GPU-xid 12", "xid 4567"])
def test_number_that_is_no_xid(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="not a known format"):
        imported(tmp_path, f"{text}\n")


@cases(
    "RAM 1685/7854MB (lfb 1044x4MB) SWAP 278/8192MB CPU [0%@1303] EMC_FREQ 0%@1866 GR3D_FREQ 0%@140",
    "# R36 (release), REVISION: 3.0, GCID: 1, BOARD: generic",
    "jetson_clocks, OFF",
)
def test_jetson_is_known_by_its_tools(tmp_path: Path, line: str) -> None:
    assert [gpu.name for gpu in imported_gpus(tmp_path, f"{line}\n").devices] == ["Jetson (nvgpu)"]


DEVICES = (
    "Device: 0, Test A, pciBusID: 2, pciDeviceID: 0, pciDomainID:0\n"
    "Device: 1, Test A, pciBusID: d8, pciDeviceID: 0, pciDomainID:1\n"
)
PEERS = "Device=0 CAN Access Peer Device=1\nDevice=1 CANNOT Access Peer Device=0\n"
CONNECTED = "P2P Connectivity Matrix\n     D\\D     0     1\n     0\t     1     1\n     1\t     1     1\n"


@cases(
    (DEVICES + PEERS, ["0000:02:00.0", "0001:d8:00.0"], ["NS"]),
    (DEVICES + CONNECTED, ["0000:02:00.0", "0001:d8:00.0"], ["OK"]),
    (CONNECTED, [None, None], ["OK"]),
    ("> Peer access from Test A (GPU0) -> Test A (GPU1) : Yes\n", [None, None], ["OK"]),
)
def test_peers_of_the_samples_of_cuda(tmp_path: Path, text: str, places: object, access: object) -> None:
    gpus = imported_gpus(tmp_path, text)
    assert [gpu.bus_id for gpu in gpus.devices] == places
    assert [pair.p2p_read for pair in gpus.pairs] == [pair.p2p_write for pair in gpus.pairs] == access


def test_numbers_of_cuda_are_not_those_of_nvidia_smi_where_models_differ(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, DEVICES.replace("1, Test A", "1, Test B") + PEERS)
    assert [(gpu.numbered, gpu.name) for gpu in gpus.devices] == [(False, "Test A"), (False, "Test B")]


@cases(
    (WATCHED.format("WARNING", "Thermal", "clocks event due to thermal violation", 2), "Thermal", "GPU 2", "warn"),
    (WATCHED.format("FAILURE", "Memory", "a double bit error", 5), "Memory", "GPU 5", "fail"),
    (TABLE, "PCIe", "GPU 3", "warn"),
    (TABLE.replace("GPU ID: 3", "-> 3     ").replace(" for GPU 3", ""), "PCIe", "GPU 3", "warn"),
    (TABLE[: TABLE.index("| GPU ID")].replace("Warning", "Healthy"), "overall", "node", "pass"),
    (TABLE[: TABLE.index("| GPU ID")], "overall", "node", "unknown"),
    ('{"body": {"Overall Health": {"value": "Healthy"}}, "header": ["Report"]}', "overall", "node", "pass"),
)
def test_health_of_dcgm(tmp_path: Path, text: str, test: str, subject: str, status: str) -> None:
    (found,) = group(imported(tmp_path, f"{text}\n").facts, Diagnostics).results
    assert (found.tool, found.test, found.subject, found.status) == ("dcgmi health", test, subject, status)


def test_message_over_two_rows_is_one(tmp_path: Path) -> None:
    (found,) = group(imported(tmp_path, TABLE).facts, Diagnostics).results
    assert found.message == "Detected more than 8 PCIe replays per minute for GPU 3: 13"


@cases(
    ("nvidia-container-cli: device error: 9: unknown device", "container runtime", "node"),
    ("nvidia-vgpu-mgr[9]: error: vmiop_log: (0x0): Incompatible Guest/Host drivers: Guest is", "vGPU manager", "node"),
    ("NVRM: vGPU 1: version mismatch between guest and host", "vGPU manager", "node"),
    ("Reason=gres/gpu count reported lower than configured (0 < 8)", "Slurm", "node"),
    ("CUDA initialization fails with error 802 (system not yet initialized)", "fabric manager", "fabric manager"),
    ('The GPU fabric stays "In Progress" on all 8 GPUs', "fabric manager", "fabric manager"),
    ('  "detail": "Persistence Mode: Persistence mode for GPU 3 is disabled. Enable it", ', "dcgmi diag", "GPU 3"),
)
def test_sentence_that_states_a_failure(tmp_path: Path, line: str, tool: str, subject: str) -> None:
    (found,) = group(imported(tmp_path, f"It says:\n{line}\n").facts, Diagnostics).results
    assert (found.tool, found.subject, found.status) == (tool, subject, "fail")


@cases(("enable", False), ("disable", True))
def test_pending_change_of_mig(tmp_path: Path, word: str, *, now: bool) -> None:
    line = f"Warning: MIG mode is in pending {word} state for GPU 00000000:C1:00.0:In use by another client\n"
    (gpu,) = imported_gpus(tmp_path, line).devices
    assert (gpu.bus_id, gpu.mig_mode, gpu.mig_mode_pending) == ("0000:c1:00.0", now, not now)


@cases(("NVIDIA GeForce T", "pass"), ("NVIDIA H100 80GB", "fail"))
def test_machine_with_geforce_gpus_needs_no_fabric_manager(tmp_path: Path, name: str, status: str) -> None:
    row = "|   0  NVIDIA Test 40GB"
    table = next(line for line in GPUS.splitlines() if line.startswith("|   0  "))
    named = table.replace(table[: len(row)], f"|   0  {name}".ljust(len(row)), 1)
    (found,) = group(imported(tmp_path, f"{FAILED}\n\n{GPUS.replace(table, named)}").facts, Diagnostics).results
    assert found.status == status


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("slurmstepd: error: NVML: Failed to get usage(15): GPU is lost", "fallen-off-the-bus"),
        ('`nvidia-smi -q -x` reports "GPU requires reset" for GPU 00000000:01:00.0', "reset-required"),
        ("NVML: the query says: no GPU is lost", None),
        ("    Performance State : GPU is lost", None),
    ],
)
def test_error_of_nvml_in_a_sentence(tmp_path: Path, sentence: str, kind: str | None) -> None:
    events = group(imported(tmp_path, f"{REGISTERED}\n{sentence}\n").facts, KernelLog).events if kind else ()
    assert [event.kind for event in events] == ([kind] if kind else [])
    assert messages.begins(sentence) == bool(kind)
