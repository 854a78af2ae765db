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
    host,
    kernel,
    log,
    logged,
    lost_gpu,
    packages,
    pci,
    pci_gpu,
    smoke_case,
    smoke_run,
    target,
    v100,
)
from helpers.saying import briefs, said
from kdoctor.check import Check
from kdoctor.facts import FactGroup, Gpu, GpuProcess, Gpus, KernelLogEvent, PciDevices
from kdoctor.model import Assumptions, Finding, GpuAssumption, Status
from kdoctor.testing import compute_check
from kdoctor_checks import _xids
from kdoctor_checks.gpu.application_xids import application_xids
from kdoctor_checks.gpu.clocks import clocks
from kdoctor_checks.gpu.count_expected import count_expected
from kdoctor_checks.gpu.ecc_errors import ecc_errors
from kdoctor_checks.gpu.ecc_mode import ecc_mode
from kdoctor_checks.gpu.fan import fan
from kdoctor_checks.gpu.free import free
from kdoctor_checks.gpu.kernel_log import kernel_log
from kdoctor_checks.gpu.logged_remapping import logged_remapping
from kdoctor_checks.gpu.mig_mode_pending import mig_mode_pending
from kdoctor_checks.gpu.model_expected import model_expected
from kdoctor_checks.gpu.persistence_mode import persistence_mode
from kdoctor_checks.gpu.power_limit import power_limit
from kdoctor_checks.gpu.readings import readings
from kdoctor_checks.gpu.replicas_match import replicas_match
from kdoctor_checks.gpu.resizable_bar import resizable_bar
from kdoctor_checks.gpu.responding import responding
from kdoctor_checks.gpu.response_time import response_time
from kdoctor_checks.gpu.same_model import same_model
from kdoctor_checks.gpu.temperature import temperature
from kdoctor_checks.gpu.visible_to_driver import visible_to_driver
from kdoctor_recordings.checks.gpu.diagnostic_warnings import diagnostic_warnings
from kdoctor_recordings.checks.gpu.diagnostics import diagnostics
from kdoctor_recordings.facts import Diagnostic, Diagnostics

FAULTS: list[tuple[Check, Callable[..., Gpu], dict[str, Any], str, str]] = [
    (clocks, gpu, {"clock_event_reasons": (0x40,) * 3}, "event reasons: ", "slowed down by hardware"),
    (resizable_bar, gpu, {"bar1_total_bytes": 256 * MIB}, "BAR1 is 128.0 GiB", "BAR1 is 256 MiB"),
    (temperature, gpu, {"temperature_margin_c": 2}, "34 C, 51 C below", "34 C, 2 C below"),
]


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
    assert addresses == {bus_id(1), bus_id(3)}
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


NO_ADDRESS = "NVRM: nvAssertOkFailedNoLog: Reset required [NV_ERR_RESET_REQUIRED] (0x62) @ kernel_channel.c:2874"
OWNED = "NVRM: The NVIDIA probe routine was not called for 3 device(s)."


def failures(*lines: str) -> dict[str, str]:
    return said(compute_check(kernel_log, logged(*lines), gpus(4), pci(4)))


def test_failure_without_an_address_belongs_to_the_only_gpu_with_an_xid() -> None:
    one = failures(xid(79, index=1), NO_ADDRESS)
    assert list(one) == [gpu(1).subject]
    assert "calls fail until the GPU is reset" in one[gpu(1).subject]
    two = failures(xid(79, index=1), xid(79, index=2), NO_ADDRESS)
    assert list(two) == [gpu(1).subject, gpu(2).subject, "kernel log"]
    owned = failures(xid(79, index=1), OWNED, NO_ADDRESS)
    assert list(owned) == [gpu(1).subject, "kernel log"]
    assert "another driver owns the GPU" in owned["kernel log"]


def test_events_of_the_driver_are_explained_by_its_checks() -> None:
    def explained(*lines: str) -> tuple[str, ...]:
        (found,) = compute_check(kernel_log, logged(*lines), gpus(1), pci(1)).findings
        return found.finding.explained_by

    assert explained(OWNED) == ("driver.loaded",)
    assert explained(OWNED, NO_ADDRESS) == ()


def test_unknown_events_are_stated() -> None:
    assert "Xid 999 not explained in NVIDIA's catalog (Xid 999" in failures(xid(999))[gpu(0).subject]
    message = "NVRM: an assertion failed somewhere"
    assert failures(message, message)["kernel log"] == f"2 unknown messages of a driver, the last one {message!r}"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"architecture": None, "compute_capability": "8.0"}, Status.FAIL),
        ({"architecture": None, "compute_capability": "7.5"}, Status.SKIP),
        ({"architecture": None, "compute_capability": None, "name": None}, Status.SKIP),
    ],
)
def test_bar_is_resizable_since_ampere(change: dict[str, Any], status: Status) -> None:
    """Compute capability 8.0 is Ampere's."""
    assert compute_check(resizable_bar, gpus(1, gpu(0, bar1_total_bytes=256 * MIB, **change))).status is status


def test_free_gpus_are_shown_by_their_number() -> None:
    assert briefs(compute_check(free, gpus(1))) == ["free"]
    assert briefs(compute_check(free, gpus(2))) == ["all free"] * 2


def held(*pids: int, **changes: Any) -> Gpu:
    processes = tuple(GpuProcess(pid=pid, used_memory_bytes=None) for pid in pids)
    return gpu(0, **{"memory_used_bytes": 2048 * MIB, "processes": processes, **changes})


DESKTOP = (GpuProcess(pid=9, name="Xorg", used_memory_bytes=None),)


@pytest.mark.parametrize(
    ("taken", "observed", "brief"),
    [
        (held(1), "2048 MiB of 79.6 GiB used, in use by process 1", "in use by process 1 (2048 MiB used)"),
        (held(1, 2), "2048 MiB of 79.6 GiB used, in use by processes 1, 2", "in use by 2 processes (2048 MiB used)"),
        (
            held(),
            "2048 MiB of 79.6 GiB used, no compute process listed",
            "memory in use, no compute process listed (2048 MiB used)",
        ),
        (held(processes=None), "2048 MiB of 79.6 GiB used, processes not read", "memory in use (2048 MiB used)"),
        (held(1, memory_used_bytes=None), "used memory not read, in use by process 1", "in use by process 1"),
        (
            held(1, graphics_processes=DESKTOP),
            "2048 MiB of 79.6 GiB used, in use by process 1",
            "in use by process 1 (2048 MiB used)",
        ),
        (
            held(graphics_processes=DESKTOP, memory_used_bytes=30 * 1024 * MIB),
            "30.0 GiB of 79.6 GiB used, in use by a desktop: Xorg",
            "in use by a desktop (30.0 GiB used)",
        ),
        (
            held(memory_total_bytes=None),
            "2048 MiB used, no compute process listed",
            "memory in use, no compute process",
        ),
    ],
)
def test_user_of_a_gpu_is_stated(taken: Gpu, observed: str, brief: str) -> None:
    result = compute_check(free, gpus(1, taken))
    assert said(result)[taken.subject] == observed
    assert briefs(result)[0].startswith(brief)


@pytest.mark.parametrize(
    ("seconds", "status"),
    [((3.0,), Status.PASS), ((3.01,), Status.FAIL), ((0.25, 1.25), Status.PASS), ((0.25, 1.26), Status.FAIL)],
)
def test_answers_may_take_as_long_as_the_limit(seconds: tuple[float, ...], status: Status) -> None:
    """3 s, and five times the median of the others, which are exact numbers here."""
    found = gpus(len(seconds), *(gpu(index, answers_s=taken) for index, taken in enumerate(seconds)))
    assert compute_check(response_time, found).status is status


@pytest.mark.parametrize(("seconds", "status"), [(0.5, Status.PASS), (0.51, Status.FAIL)])
def test_answer_within_half_a_second_is_not_slow(seconds: float, status: Status) -> None:
    assert compute_check(response_time, gpus(2, gpu(0), gpu(1, answers_s=seconds))).status is status


def test_slow_answer_is_stated_with_those_of_the_others() -> None:
    slow = compute_check(response_time, gpus(3, gpu(0, answers_s=4.0), gpu(1), gpu(2)))
    stated = "the driver took 4 s to answer all calls; median of the others: 0.04 s"
    assert said(slow)[gpu(0).subject] == stated
    assert said(compute_check(response_time, gpus(1, gpu(0, answers_s=4.0))))[gpu(0).subject].endswith("all calls")


@pytest.mark.parametrize(
    ("wanted", "number", "expected", "brief"),
    [
        ({"count": 4}, 2, "exactly 4", "2 usable, exactly 4 expected"),
        ({"at_least": 4}, 2, "at least 4", "2 usable, at least 4 expected"),
        ({"count": 1}, 2, "exactly 1", "2 usable, exactly 1 expected"),
    ],
)
def test_number_of_gpus_is_stated(wanted: dict[str, Any], number: int, expected: str, brief: str) -> None:
    facts = gpus(number), pci(number), environment()
    result = compute_check(count_expected, *facts, assumptions=Assumptions(gpus=GpuAssumption(**wanted)))
    (found,) = result.findings
    assert (found.finding.expected, found.finding.headline) == (expected, brief)
    assert said(result) == {"GPUs": f"{number} usable GPUs"}


def test_more_gpus_than_wanted_are_hidden_by_a_command() -> None:
    facts = gpus(4), pci(4), environment()
    result = compute_check(count_expected, *facts, assumptions=Assumptions(gpus=GpuAssumption(count=2)))
    (found,) = result.findings
    assert found.finding.remedy.commands == (
        "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
        "export CUDA_VISIBLE_DEVICES=0,1",
    )
    assert found.finding.remedy.look == ("kdoctor topology --replicas 2",)


def diagnosed(*statuses: str) -> Any:
    results = tuple(
        Diagnostic(tool="dcgmi diag", test=f"test{n}", subject="GPU 0", status=status)  # type: ignore[arg-type]
        for n, status in enumerate(statuses)
    )
    return compute_check(diagnostics, Diagnostics(results=results))


def test_failed_tests_are_named() -> None:
    assert briefs(diagnosed("fail", "fail")) == ["test0, test1 failed"]
    assert briefs(diagnosed("fail", "fail", "fail")) == ["test0, test1 and 1 more failed"]
    assert said(diagnosed("fail", "pass", "fail")) == {"GPU 0": "dcgmi diag: test0, test2 failed"}
    assert said(diagnosed("pass", "pass", "skip")) == {"GPU 0": "dcgmi diag: 2 tests passed"}
    assert said(diagnosed("pass", "unknown")) == {"GPU 0": "dcgmi diag: no clear result of test1"}


@pytest.mark.parametrize(("share", "stated"), [(0.5, "at least 350 W"), (0.8, "at least 560 W")])
def test_least_power_limit_is_a_share_of_the_default(share: float, stated: str) -> None:
    low = gpus(1, gpu(0, enforced_power_limit_w=100.0))
    assert compute_check(power_limit, low, least_share=share).findings[0].finding.expected == stated


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (Gpus(state="failed", error="Unknown Error"), "the driver does not respond: Unknown Error"),
        (Gpus(state="failed"), "the driver does not respond: failed"),
    ],
)
def test_reason_of_unknown_replicas_is_stated(state: Gpus, reason: str) -> None:
    assert [item.reason for item in matched(smoke_run(replicas=4), state).unjudged] == [reason]


def missing_one(**changes: Any) -> dict[str, str]:
    found = pci(2, pci_gpu(0), pci_gpu(1, **changes))
    return said(compute_check(visible_to_driver, found, gpus(1), kernel(2), host()))


@pytest.mark.parametrize(
    ("bound", "subject", "stated"),
    [
        ("vfio-pci", bus_id(1), "assigned to a virtual machine (vfio-pci)"),
        ("nouveau", f"GPU at {bus_id(1)}", "bound to the kernel driver nouveau"),
        (None, f"GPU at {bus_id(1)}", "missing from NVML; the PCI device has no driver bound"),
        ("nvidia", f"GPU at {bus_id(1)}", "missing from NVML; the PCI device is bound to the driver"),
    ],
)
def test_gpu_that_nvml_does_not_list_is_stated(bound: str | None, subject: str, stated: str) -> None:
    assert missing_one(driver=bound) == {
        subject: stated,
        gpu(0).subject: "on the PCI bus and in NVML (NVIDIA H100 80GB HBM3)",
    }


def test_listed_gpu_without_a_name_is_stated() -> None:
    result = compute_check(visible_to_driver, pci(1), gpus(1, gpu(0, name=None)), kernel(1), host())
    assert said(result) == {gpu(0).subject: "on the PCI bus and in NVML (name not read)"}


@pytest.mark.parametrize(
    ("errors", "lines", "headline"),
    [
        ({"power_draw_w": "no answer within 8 s"}, (), "hangs (power draw)"),
        ({"handle": "Unknown Error"}, (), "cannot be opened (Unknown Error)"),
        ({"handle": "Unknown Error"}, (xid(119),), "cannot be opened (Unknown Error) (Xid 119)"),
        ({"name": "NVML_ERROR_GPU_IS_LOST"}, (xid(13),), "lost"),
        ({"name": "NVML_ERROR_GPU_IS_LOST"}, (xid(79),), "lost, fell off the bus (Xid 79)"),
        (
            {"name": "NVML_ERROR_GPU_IS_LOST"},
            (f"NVRM: GPU {bus_id(0)}: GPU has fallen off the bus.",),
            "lost, fell off the bus",
        ),
        (
            {"name": "NVML_ERROR_GPU_IS_LOST", "power_draw_w": "no answer within 8 s"},
            (),
            "lost",
        ),
    ],
)
def test_gpu_that_does_not_respond_has_a_short_form(
    errors: dict[str, str], lines: tuple[str, ...], headline: str
) -> None:
    result = compute_check(responding, gpus(1, gpu(0, errors=errors)), pci(1), logged(*lines))
    assert briefs(result)[0] == headline


def test_range_of_the_used_memory_is_stated() -> None:
    """In order of size, not of the GPUs."""
    taken = (gpu(index, memory_used_bytes=size * MIB) for index, size in enumerate((4096, 2048, 3072)))
    result = compute_check(free, gpus(3, *taken))
    assert briefs(result)[0] == "memory in use, no compute process listed (2048 MiB to 4096 MiB used)"


@pytest.mark.parametrize(("tolerance", "status"), [(0.5, Status.PASS), (0.49, Status.FAIL)])
def test_memory_may_differ_by_the_tolerance(tolerance: float, status: Status) -> None:
    full = 2**36
    found = gpus(3, *(gpu(index, memory_total_bytes=full // (2 if index == 2 else 1)) for index in range(3)))
    assert compute_check(same_model, found, memory_tolerance=tolerance).status is status


def test_gpu_with_a_name_or_an_error_was_read() -> None:
    assert said(compute_check(readings, gpus(1, gpu(0, errors={})))) == {gpu(0).subject: "all readings succeeded"}
    unread = gpu(0, name=None, errors={"name": "Unknown Error"})
    assert said(compute_check(readings, gpus(1, unread))) == {gpu(0).subject: "not read: name (Unknown Error)"}
    assert said(compute_check(readings, gpus(1, gpu(0, name=None, errors={})))) == {
        gpu(0).subject: "nothing about it was read"
    }


def test_lost_gpu_has_no_model() -> None:
    wanted = Assumptions(gpus=GpuAssumption(model="NVIDIA H100*"))
    result = compute_check(model_expected, gpus(2, gpu(0), lost_gpu(1)), assumptions=wanted)
    assert [item.explained_by for item in result.unjudged] == [("gpu.responding",)]
    assert said(result)[gpu(0).subject] == "model is NVIDIA H100 80GB HBM3"


def test_tests_with_a_warning_are_named() -> None:
    results = tuple(Diagnostic(tool="dcgmi diag", test=f"t{n}", subject="GPU 0", status="warn") for n in range(3))
    result = compute_check(diagnostic_warnings, Diagnostics(results=results))
    assert briefs(result) == ["dcgmi diag: t0, t1 and 1 more"]
    assert said(result) == {"GPU 0": "dcgmi diag: t0, t1, t2: a warning"}


@pytest.mark.parametrize(
    ("number", "nodes", "subject", "stated"),
    [
        (1, 1, bus_id(1), "not assigned to this container (no device node)"),
        (1, 2, f"GPU at {bus_id(1)}", "missing from NVML; the PCI device is bound to the driver"),
        (1, 0, bus_id(1), "on the PCI bus, not in NVML; this may be a container"),
    ],
)
def test_container_has_nodes_of_its_gpus_only(number: int, nodes: int, subject: str, stated: str) -> None:
    facts = pci(2), gpus(number), kernel(nodes), host(container="docker")
    assert said(compute_check(visible_to_driver, *facts))[subject] == stated


def test_failure_of_a_gpu_that_is_not_known_has_no_other_cause() -> None:
    alone = compute_check(kernel_log, logged(xid(79)), missing={Gpus: "not in the log", PciDevices: "not in the log"})
    assert [item.finding.explained_by for item in alone.findings] == [()]


@pytest.mark.parametrize("expected", [True, False])
def test_expected_persistence_mode_is_stated(expected: bool) -> None:  # noqa: FBT001 - a table
    other = gpus(1, gpu(0, persistence_mode=not expected))
    (found,) = compute_check(persistence_mode, other, expected=expected).findings
    assert found.finding.expected == f"persistence mode {'on' if expected else 'off'}"


def test_gpu_after_one_without_a_temperature_is_judged() -> None:
    unread = v100(0, fan_speed_percent=0, temperature_c=None, errors={"temperature_c": "Unknown Error"})
    result = compute_check(fan, gpus(2, unread, v100(1, fan_speed_percent=0, temperature_c=90)))
    assert [item.subject for item in result.unjudged] == [unread.subject]
    assert [item.finding.subject for item in result.findings] == [gpu(1).subject]


def test_lost_gpus_of_an_exact_number_need_a_restart() -> None:
    facts = gpus(3, gpu(0), gpu(1), lost_gpu(2)), pci(3), environment()
    enough = compute_check(count_expected, *facts, assumptions=Assumptions(gpus=GpuAssumption(count=2)))
    assert enough.status is Status.PASS
    (found,) = compute_check(count_expected, *facts, assumptions=Assumptions(gpus=GpuAssumption(count=3))).findings
    assert found.finding.remedy.commands == ("sudo reboot",)


def test_xid_of_a_gpu_that_fell_off_the_bus_is_named_next_to_other_lines() -> None:
    gone = gpu(0, errors={"name": "NVML_ERROR_GPU_IS_LOST"})
    lines = (xid(79), f"NVRM: GPU {bus_id(0)}: GPU has fallen off the bus.")
    result = compute_check(responding, gpus(1, gone), pci(1), logged(*lines))
    assert briefs(result)[0] == "lost, fell off the bus (Xid 79)"


def test_last_summary_of_the_log_counts() -> None:
    """Xid 154 first asks for a reset, and then for a restart, or the other way round."""
    reset, restart = (xid(154, RECOVERY.format(action)) for action in ("GPU Reset Required", "Node Reboot Required"))
    for lines, command in (((reset, restart), "sudo reboot"), ((restart, reset), "sudo nvidia-smi --gpu-reset")):
        (found,) = compute_check(kernel_log, logged(*lines), gpus(1), pci(1)).findings
        assert found.finding.remedy.commands[0].startswith(command)


def test_log_is_explained_only_by_checks_of_what_it_has() -> None:
    worn = gpus(1, gpu(0, ecc_uncorrected_volatile=1, recovery_action="reset"))
    (found,) = compute_check(kernel_log, logged(xid(48)), worn, pci(1)).findings
    assert found.finding.explained_by == ("gpu.ecc-errors",)


def test_checklist_can_allow_a_lower_power_limit() -> None:
    low = gpus(1, gpu(0, enforced_power_limit_w=560.0))
    assert compute_check(power_limit, low, least_share=0.8).status is Status.PASS
    assert compute_check(power_limit, low, least_share=0.9).status is Status.FAIL
