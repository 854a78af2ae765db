"""Messages of the fabric manager's service and of DCGM's health watch: documented forms, invented machines."""

from pathlib import Path

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import TABLE as GPUS
from helpers.kdoctor_recordings.dumps import group, imported
from kdoctor_recordings.facts import Diagnostics

STARTED = "Jan 05 14:45:28 n1 systemd[1]: Started nvidia-fabricmanager.service - NVIDIA fabric manager service."
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
    ("Jan 05 05:33:40 n1 systemd[1]: Started NVIDIA Persistence Daemon.", "pass"),
    (REGISTERED, "pass"),
)
def test_persistence_daemon_tells_whether_the_driver_has_its_devices(tmp_path: Path, line: str, status: str) -> None:
    (found,) = group(imported(tmp_path, f"{line}\n").facts, Diagnostics).results
    assert (found.tool, found.subject, found.status) == ("nvidia-persistenced", "node", status)


@cases(
    (WATCHED.format("WARNING", "Thermal", "clocks event due to thermal violation", 2), "Thermal", "GPU 2", "warn"),
    (WATCHED.format("FAILURE", "Memory", "a double bit error", 5), "Memory", "GPU 5", "fail"),
    (TABLE, "PCIe", "GPU 3", "warn"),
    (TABLE.replace("GPU ID: 3", "-> 3     ").replace(" for GPU 3", ""), "PCIe", "GPU 3", "warn"),
    (TABLE[: TABLE.index("| GPU ID")].replace("Warning", "Healthy"), "overall", "node", "pass"),
    (TABLE[: TABLE.index("| GPU ID")], "overall", "node", "unknown"),
)
def test_health_of_dcgm(tmp_path: Path, text: str, test: str, subject: str, status: str) -> None:
    (found,) = group(imported(tmp_path, f"{text}\n").facts, Diagnostics).results
    assert (found.tool, found.test, found.subject, found.status) == ("dcgmi health", test, subject, status)


def test_message_over_two_rows_is_one(tmp_path: Path) -> None:
    (found,) = group(imported(tmp_path, TABLE).facts, Diagnostics).results
    assert found.message == "Detected more than 8 PCIe replays per minute for GPU 3: 13"


@cases(("NVIDIA GeForce T", "skip"), ("NVIDIA H100 80GB", "fail"))
def test_machine_with_geforce_gpus_needs_no_fabric_manager(tmp_path: Path, name: str, status: str) -> None:
    row = "|   0  NVIDIA Test 40GB"
    table = next(line for line in GPUS.splitlines() if line.startswith("|   0  "))
    named = table.replace(table[: len(row)], f"|   0  {name}".ljust(len(row)), 1)
    (found,) = group(imported(tmp_path, f"{FAILED}\n\n{GPUS.replace(table, named)}").facts, Diagnostics).results
    assert found.status == status
