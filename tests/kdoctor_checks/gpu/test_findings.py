"""What the checks of GPUs say about healthy and faulty ones, and which GPUs their commands name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from helpers.facts import (
    MIB,
    bus_id,
    environment,
    gpu,
    gpus,
    log,
    logged,
    packages,
    pci,
    smoke_case,
    smoke_run,
    target,
    v100,
)
from helpers.saying import briefs, said
from kdoctor.check import Check
from kdoctor.facts import FactGroup, Gpu, KernelLogEvent
from kdoctor.model import Finding, Status
from kdoctor.testing import compute_check
from kdoctor_checks import _xids
from kdoctor_checks.gpu.application_xids import application_xids
from kdoctor_checks.gpu.clocks import clocks
from kdoctor_checks.gpu.clocks_limited import clocks_limited
from kdoctor_checks.gpu.compute_mode import compute_mode
from kdoctor_checks.gpu.ecc_errors import ecc_errors
from kdoctor_checks.gpu.ecc_mode import ecc_mode
from kdoctor_checks.gpu.fan import fan
from kdoctor_checks.gpu.kernel_log import kernel_log
from kdoctor_checks.gpu.logged_remapping import logged_remapping
from kdoctor_checks.gpu.mig_mode_pending import mig_mode_pending
from kdoctor_checks.gpu.persistence_mode import persistence_mode
from kdoctor_checks.gpu.power_limit import power_limit
from kdoctor_checks.gpu.recovery_action import recovery_action
from kdoctor_checks.gpu.repair_pending import repair_pending
from kdoctor_checks.gpu.replicas_match import replicas_match
from kdoctor_checks.gpu.resizable_bar import resizable_bar
from kdoctor_checks.gpu.responding import responding
from kdoctor_checks.gpu.retired_pages import retired_pages
from kdoctor_checks.gpu.retired_pages_pending import retired_pages_pending
from kdoctor_checks.gpu.row_remapping import row_remapping
from kdoctor_checks.gpu.row_remapping_pending import row_remapping_pending
from kdoctor_checks.gpu.sram_errors import sram_errors
from kdoctor_checks.gpu.temperature import temperature
from kdoctor_checks.gpu.thermal_slowdown import thermal_slowdown
from kdoctor_checks.gpu.unrepairable_memory import unrepairable_memory

HEAT = {"clock_event_reasons": (0x20,) * 3}
FAULTS: list[tuple[Check, Callable[..., Gpu], dict[str, Any], str, str]] = [
    (clocks, gpu, {"clock_event_reasons": (0x40,) * 3}, "event reasons: ", "slowed down by hardware"),
    (clocks_limited, gpu, {"clock_event_reasons": (0x2,) * 3}, "no limiting setting", "clocks limited by "),
    (compute_mode, gpu, {"compute_mode": "prohibited"}, "compute mode is default", "compute mode is prohibited"),
    (ecc_errors, gpu, {"ecc_uncorrected_volatile": 2}, "0 uncorrected", "2 uncorrected"),
    (ecc_mode, gpu, {"ecc_mode": False, "ecc_mode_pending": False}, "ECC is on", "ECC is off"),
    (ecc_mode, gpu, {"ecc_mode_pending": False}, "ECC is on", "ECC is on, and off after"),
    (fan, v100, {"fan_speed_percent": 0, "temperature_c": 70}, "fan at 30 %, ", "fan at 0 %, 70 C"),
    (mig_mode_pending, gpu, {"mig_mode_pending": True}, "MIG is off", "MIG is off, but on after"),
    (persistence_mode, gpu, {"persistence_mode": False}, "persistence mode is on", "persistence mode is off"),
    (power_limit, gpu, {"enforced_power_limit_w": 300.0}, "power limit is 700 W", "power limit is 300 W (default 700"),
    (recovery_action, gpu, {"recovery_action": "reset"}, "recovery action none", "recovery action reset"),
    (repair_pending, gpu, {"tpc_repair_pending": True}, "no repair pending", "TPC repair pending"),
    (repair_pending, gpu, {"channel_repair_pending": True}, "no repair pending", "memory channel repair pending"),
    (resizable_bar, gpu, {"bar1_total_bytes": 256 * MIB}, "BAR1 is 128.0 GiB", "BAR1 is 256 MiB"),
    (retired_pages, v100, {"retired_pages_double_bit": 90}, "0 retired pages", "90 retired pages (0 single-bit, 90 d"),
    (retired_pages_pending, v100, {"retired_pages_pending": True}, "no pages are waiting", "memory pages are waiting"),
    (row_remapping, gpu, {"remapped_rows_failure": True}, "no remapping failure", "a faulty memory row could not"),
    (row_remapping_pending, gpu, {"remapped_rows_pending": True}, "no rows are waiting", "memory rows are waiting"),
    (sram_errors, gpu, {"sram_threshold_exceeded": True}, "errors are below", "errors are above"),
    (temperature, gpu, {"temperature_margin_c": 2}, "34 C, 51 C below", "34 C, 2 C below"),
    (thermal_slowdown, gpu, HEAT, "no slowdown", "slowed down (SW Thermal"),
    (unrepairable_memory, gpu, {"unrepairable_memory": True}, "no unrepairable memory", "cannot be repaired"),
]  # fmt: skip


def named(finding: Finding) -> set[str]:
    """The addresses of GPUs in the commands of a finding."""
    commands = (*finding.remedy.commands, *finding.remedy.look)
    return {address for command in commands for address in re.findall(r"\b0000:\w\w:00\.0\b", command)}


@pytest.mark.parametrize(("check", "build", "change", "healthy", "faulty"), FAULTS)
def test_commands_choose_the_gpus_that_failed(
    check: Check, build: Callable[..., Gpu], change: dict[str, Any], healthy: str, faulty: str
) -> None:
    devices = build(0), build(1, **change), build(2), build(3, **change)
    result = compute_check(check, gpus(4, *devices))
    text = said(result)
    assert [item.finding.subject for item in result.findings] == [devices[1].subject, devices[3].subject]
    for index, device in enumerate(devices):
        assert (faulty if index % 2 else healthy) in text[device.subject]
    addresses = set.union(*(named(item.finding) for item in result.findings))
    assert addresses <= {bus_id(1), bus_id(3)}
    for item in result.findings:
        assert item.finding.headline != item.finding.expected


def events(*lines: str) -> list[KernelLogEvent]:
    return list(logged(*lines).events)


def xid(code: int, rest: str = "pid=1, name=python", index: int = 0) -> str:
    return f"NVRM: Xid (PCI:{bus_id(index)[:-2]}): {code}, {rest}"


RECOVERY = "pid=1, GPU recovery action changed from 0x0 (None) to 0x1 ({})"


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        ([xid(79), xid(154, RECOVERY.format("GPU Reset Required"))], "gpu-reset"),  # 154 sums up: not "reboot" of 79
        ([xid(95), xid(154, RECOVERY.format("Node Reboot Required"))], "reboot"),
        ([xid(95), xid(154, RECOVERY.format("None"))], "gpu-reset"),  # after a reset, 95 counts
        ([xid(79), xid(95)], "reboot"),  # the stronger one
        ([xid(78)], "nvidia-smi"),  # UPDATE_SWFW
        ([xid(54)], "nvidia-bug-report"),  # CHECK_MECHANICALS
        ([xid(12)], "nvidia-bug-report"),  # CONTACT_SUPPORT
    ],
)
def test_fix_for_the_log_is_what_the_catalog_asks_for(lines: list[str], command: str) -> None:
    (found,) = compute_check(kernel_log, logged(*lines), gpus(2), pci(2)).findings
    commands = (*found.finding.remedy.commands, *found.finding.remedy.look)
    assert command in commands[0] or command in commands[1]
    assert bool(found.finding.remedy.commands) == (command in ("gpu-reset", "reboot"))
    assert ("--gpu-reset" in commands[0]) == (command == "gpu-reset")


def test_driver_of_others_is_unloaded_only_if_nothing_else_failed() -> None:
    owned = "NVRM: The NVIDIA probe routine was not called for 3 device(s)."
    fatal = "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot"
    (found,) = compute_check(kernel_log, logged(owned, fatal), gpus(4), pci(4)).findings
    assert found.finding.remedy.commands == ("sudo reboot",)


def test_xid_without_a_code_has_no_meaning() -> None:
    assert _xids.meaning(KernelLogEvent(kind="xid", text="NVRM: Xid (PCI:0000:10:00)")) == ""


def test_unknown_xid_may_be_of_a_program() -> None:
    unknown = compute_check(application_xids, logged(xid(999)), gpus(1), pci(1))
    assert (unknown.status, unknown.unjudged[0].reason[:8]) == (Status.UNKNOWN, "Xid 999 ")
    message = compute_check(application_xids, logged("NVRM: an assertion failed somewhere"), gpus(1), pci(1))
    assert [item.explained_by for item in message.unjudged] == [("gpu.kernel-log",)]


def test_reported_repairs_do_not_hide_those_of_other_gpus() -> None:
    silent = gpu(1, remapped_rows_pending=None, retired_pages_pending=None)
    result = compute_check(logged_remapping, logged(xid(63), xid(94, index=1)), gpus(2, gpu(0), silent), pci(2))
    assert [item.subject for item in result.evidence] == [gpu(0).subject]
    (found,) = result.findings
    assert (found.finding.subject, found.finding.remedy.commands) == (
        silent.subject,
        (f"sudo nvidia-smi --gpu-reset -i {bus_id(1)}",),
    )


def matched(run: FactGroup, *facts: FactGroup) -> Any:
    return compute_check(replicas_match, run, gpus(4), pci(4), environment(), packages(), target(), *facts)


def test_finding_about_replicas_names_the_mask_if_there_is_one() -> None:
    seen = smoke_run("smoke.baseline", 4, smoke_case(replicas=3), gpus_seen=3)
    assert matched(seen).findings[0].finding.expected == "4 registered"
    masked = environment(CUDA_VISIBLE_DEVICES="0,1,2,3")
    assert matched(seen, masked).findings[0].finding.expected == "4 registered (CUDA_VISIBLE_DEVICES=0,1,2,3)"


def test_strategy_without_replicas_is_stated() -> None:
    none = smoke_case(replicas=0, devices=("/device:CPU:0",))
    finding = matched(smoke_run("smoke.baseline", 4, none)).findings[0].finding
    assert finding.observed.startswith("0 replicas, 0 on a GPU; 4 on the PCI bus, 4 in the driver, 4 visible to CUDA")
    assert finding.headline == "0 on a GPU, although TensorFlow has 4 GPUs"


def test_model_without_resizable_bar_is_named() -> None:
    old = {"architecture": "Turing", "bar1_total_bytes": 256 * MIB}
    result = compute_check(resizable_bar, gpus(2, gpu(0, name="Tesla T4", **old), gpu(1, name=None, **old)))
    assert result.reason == "no resizable BAR is known for Tesla T4, this model"


@pytest.mark.parametrize(
    ("errors", "why"),
    [
        ({"name": "A", "uuid": "B"}, "A"),
        ({"uuid": "B"}, "B"),
        ({}, "no reason given"),
    ],
)
def test_reason_of_a_gpu_without_identity_is_stated(errors: dict[str, str], why: str) -> None:
    nameless = gpu(0, name=None, uuid=None, bus_id=None, errors=errors)
    assert said(compute_check(responding, gpus(1, nameless), pci(1), log()))[nameless.subject].endswith(f"({why})")
    assert said(compute_check(responding, gpus(1, gpu(0, name=None)), pci(1), log()))[gpu(0).subject].startswith(
        "responds"
    )


@pytest.mark.parametrize(
    ("state", "explained"),
    [
        ({"fan_speed_percent": 0}, ("gpu.fan",)),
        ({"fan_speed_percent": 1}, ()),
        ({"clock_event_reasons": (0x40,) * 3}, ("gpu.clocks",)),
        (
            {"fan_speed_percent": 0, "clock_event_reasons": (0x60,) * 3},
            ("gpu.fan", "gpu.clocks", "gpu.thermal-slowdown"),
        ),
    ],
)
def test_heat_is_explained_by_what_the_facts_show(state: dict[str, Any], explained: tuple[str, ...]) -> None:
    (found,) = compute_check(temperature, gpus(1, gpu(0, temperature_margin_c=2, **state))).findings
    assert found.finding.explained_by == explained


def test_transient_slowdown_of_one_reading_is_unknown() -> None:
    once = compute_check(clocks, gpus(1, gpu(0, clock_event_reasons=(0x8,))))
    assert (once.status, "single reading" in (once.reason or "")) == (Status.UNKNOWN, True)
    assert compute_check(clocks, gpus(1, gpu(0, clock_event_reasons=(0x8, 0x8)))).status is Status.FAIL
    assert compute_check(clocks, gpus(1, gpu(0, clock_event_reasons=()))).status is Status.UNKNOWN


def test_errors_within_the_limit_pass_and_are_stated() -> None:
    few = gpus(1, gpu(0, ecc_uncorrected_volatile=2, ecc_uncorrected_aggregate=7))
    result = compute_check(ecc_errors, few, most=2)
    assert said(result)[gpu(0).subject].endswith(", 7 over the GPU's lifetime")
    assert (result.status, result.evidence[0].brief) == (Status.PASS, "")
    assert compute_check(ecc_errors, few, most=1).findings[0].finding.expected == "at most 1"
    assert briefs(compute_check(ecc_errors, gpus(1))) == ["no memory errors"]
    unread = gpus(1, gpu(0, ecc_uncorrected_volatile=2, ecc_uncorrected_aggregate=None))
    assert "lifetime" not in said(compute_check(ecc_errors, unread))[gpu(0).subject]


def test_limit_of_another_default_has_a_command_for_its_own_gpus() -> None:
    low = {"enforced_power_limit_w": 100.0}
    mixed = gpus(3, gpu(0, **low), gpu(1, default_power_limit_w=300.0, **low), gpu(2))
    found = compute_check(power_limit, mixed).findings
    assert [item.finding.remedy.commands for item in found] == [
        (f"sudo nvidia-smi -i {bus_id(0)} -pl 700",),
        (f"sudo nvidia-smi -i {bus_id(1)} -pl 300",),
    ]
    assert [item.finding.rollback.commands for item in found] == [
        (f"sudo nvidia-smi -i {bus_id(0)} -pl 100",),
        (f"sudo nvidia-smi -i {bus_id(1)} -pl 100",),
    ]
    assert briefs(compute_check(power_limit, mixed))[1] == "power limit 100 W, default 300 W"


@pytest.mark.parametrize(("now", "then", "command", "back"), [(False, True, "0", "1"), (True, False, "1", "0")])
def test_change_of_mig_is_cancelled_and_restored(now: bool, then: bool, command: str, back: str) -> None:  # noqa: FBT001 - a table
    (found,) = compute_check(mig_mode_pending, gpus(1, gpu(0, mig_mode=now, mig_mode_pending=then))).findings
    assert found.finding.remedy.commands == (f"sudo nvidia-smi -mig {command}",)
    assert found.finding.rollback.commands == (f"sudo nvidia-smi -mig {back}",)


@pytest.mark.parametrize(("pending", "back"), [(True, "1"), (False, "0")])
def test_mode_of_ecc_is_restored(pending: bool, back: str) -> None:  # noqa: FBT001 - a table
    (found,) = compute_check(ecc_mode, gpus(1, gpu(0, ecc_mode=False, ecc_mode_pending=pending))).findings
    assert found.finding.rollback.commands[0] == f"sudo nvidia-smi -i {bus_id(0)} -e {back}"


@pytest.mark.parametrize(("expected", "command", "back"), [(True, "1", "0"), (False, "0", "1")])
def test_persistence_mode_is_set_and_restored(expected: bool, command: str, back: str) -> None:  # noqa: FBT001 - a table
    other = gpus(1, gpu(0, persistence_mode=not expected))
    (found,) = compute_check(persistence_mode, other, expected=expected).findings
    assert found.finding.remedy.commands == (f"sudo nvidia-smi -pm {command}",)
    assert found.finding.rollback.commands == (f"sudo nvidia-smi -pm {back}",)


@pytest.mark.parametrize(("degrees", "status"), [(49, Status.PASS), (50, Status.FAIL)])
def test_fan_may_stand_below_a_temperature(degrees: int, status: Status) -> None:
    result = compute_check(fan, gpus(1, v100(0, fan_speed_percent=0, temperature_c=degrees)), may_stand_below_c=50)
    assert result.status is status
    assert briefs(result)[0] == ("fan stopped at 50 C" if status is Status.FAIL else "")
