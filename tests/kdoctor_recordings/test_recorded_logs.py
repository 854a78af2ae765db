"""Recorded kernel logs and results of diagnostic tools get the reading of an expert (see both INDEX.md)."""

from dataclasses import dataclass, field

import pytest

from helpers.checks import ALL
from helpers.judging import TODAY
from helpers.kdoctor_recordings.corpus import corpus_snapshot, recorded
from kdoctor.engine.judge import PlannedCheck, Rules, judge
from kdoctor.engine.report import Result
from kdoctor.engine.verdict import conclude
from kdoctor.facts import Gpus
from kdoctor.model import Assumptions, GpuAssumption, Severity, Status

pytestmark = pytest.mark.corpus

# What a log can show. Other checks have no evidence in it.
OF_LOGS = {
    "driver.memory-regions",
    "gpu.application-xids",
    "gpu.diagnostic-warnings",
    "gpu.diagnostics",
    "gpu.kernel-log",
    "gpu.logged-remapping",
    "host.kernel-errors",
    "topology.iommu-faults",
    "topology.logged-pcie-errors",
    "topology.nvswitch-errors",
    "topology.nvswitch-warnings",
}
PLAN = [PlannedCheck(check=check, severity=check.severity) for check in ALL.values() if check.id in OF_LOGS]


def results(*names: str) -> dict[str, Result]:
    rules = Rules(today=TODAY, assumptions=Assumptions(gpus=GpuAssumption(at_least=1)))
    return {result.id: result for result in judge(PLAN, dict(corpus_snapshot(*names)), rules)}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What an expert reads."""

    exit_code: int
    failing: dict[str, set[str]] = field(default_factory=dict)
    """Check to the commands of its fixes."""
    unknown: frozenset[str] = frozenset()


REBOOT = "sudo reboot"


def reset(bus_id: str) -> str:
    return f"sudo nvidia-smi --gpu-reset -i {bus_id}"


def failure(*commands: str) -> Reading:
    return Reading(exit_code=1, failing={"gpu.kernel-log": set(commands)})


READINGS = {
    "kmsg/xid119-gsp-timeout-xe9680.log": failure(reset("0000:9b:00.0")),
    "second/xid109-chia74.log": failure(reset("0000:0b:00.0")),
    "second/xid119-kvm-nutanix-quoted.log": failure(reset("0000:00:06.0")),
    "second/xid144-148-nvlink5-fatal-gpud.log": failure(reset("0000:04:00.0")),
    "second/xid62-rtx5080-forum371272.log": failure(reset("0000:01:00.0")),
    "second/reset-required-sichek51.log": failure(REBOOT),
    "second/nouveau-owns-bigdata133.log": failure("sudo modprobe -r nouveau", "sudo modprobe nvidia"),
    "second/uvm-fatal-154-5090egpu.log": failure(REBOOT),
    "second/api-mismatch-zh-ogkm626.log": failure(REBOOT),
    "second/xid94-mig-nvidia-docs.log": Reading(exit_code=0, failing={"gpu.logged-remapping": {reset("0000:01:00.0")}}),
    "second/gpud-memory-dmesg-iso.log": Reading(exit_code=0, failing={"gpu.application-xids": set()}),
    "second/aer-corrected-popos3363.log": Reading(exit_code=0, failing={"topology.logged-pcie-errors": set()}),
    "second/gpud-pstore-dmesg.txt": Reading(exit_code=0, failing={"host.kernel-errors": set()}),
    "second/gpud-kmsg.2.peermem.log": Reading(exit_code=3, unknown=frozenset({"gpu.kernel-log"})),
    "fm/fabricmanager-nvswitch-nonfatal.log": Reading(exit_code=3, failing={"gpu.diagnostic-warnings": set()}),
}


@pytest.mark.parametrize("name", READINGS)
def test_log_gets_the_reading_of_an_expert(name: str) -> None:
    found = results(name)
    reading = READINGS[name]
    failing = {
        check_id: {command for item in result.findings for command in item.finding.remedy.commands}
        for check_id, result in found.items()
        if result.status is Status.FAIL
    }
    assert failing == reading.failing
    assert reading.unknown <= {check_id for check_id, result in found.items() if result.status is Status.UNKNOWN}
    # The fabric manager's log is not a kernel log. Without one, most checks have nothing to judge.
    if not name.startswith("fm/"):
        assert conclude(found.values(), Severity.ERROR).exit_code == reading.exit_code


def test_memory_error_and_its_consequences() -> None:
    found = results("kmsg/xid48-63-94-h100-dmesg-iso.log")
    (failed,) = found["gpu.kernel-log"].findings
    assert failed.finding.remedy.commands == (reset("0000:19:00.0"),)
    assert found["gpu.logged-remapping"].status is Status.SKIP


def test_lost_gpu_and_failed_remapping() -> None:
    found = results("kmsg/xid-and-fallen-off-lines.log")
    fixes = {item.finding.subject: item.finding.remedy.commands for item in found["gpu.kernel-log"].findings}
    assert fixes == {"GPU at 0000:b3:00.0": (REBOOT,), "GPU at 0000:0f:00.0": (reset("0000:0f:00.0"),)}


def test_no_recorded_log_is_forgotten() -> None:
    folder = recorded("second")
    logs = {f"second/{file.name}" for file in folder.glob("*.log")}
    assert logs <= set(READINGS)


def test_table_of_query_gpu() -> None:
    gpus = corpus_snapshot("second/azdiag-query-gpu.csv")[Gpus]
    assert isinstance(gpus, Gpus)
    assert [(gpu.index, gpu.bus_id, gpu.retired_pages_double_bit) for gpu in gpus.devices] == [
        (0, "0001:00:00.0", 0),
        (1, "0002:00:00.0", 0),
        (2, "000a:00:00.0", 0),
        (3, "000d:00:00.0", 0),
    ]
    assert {gpu.errors["remapped_rows_failure"] for gpu in gpus.devices} == {"N/A"}
