"""The limits of the checks of GPUs, and the numbers and names that they state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import GIB, MIB, bus_id, gpu, gpus, lost_gpu
from helpers.saying import briefs, said
from kdoctor.facts import Environment, FactGroup, GpuProcess, KernelLogEvent, not_collected
from kdoctor.model import Action, Assumptions, GpuAssumption, Status
from kdoctor.probes.kernel_log import parse_log
from kdoctor.testing import compute_check
from kdoctor_checks._gpus import RESTART
from kdoctor_checks.gpu._clocks import cause, clocks, held, lasting, seen
from kdoctor_checks.gpu._recovery import recovery
from kdoctor_checks.gpu.application_xids import application_xids
from kdoctor_checks.gpu.count_expected import count_expected
from kdoctor_checks.gpu.equal_power_limits import equal_power_limits
from kdoctor_checks.gpu.free import free
from kdoctor_checks.gpu.same_model import same_model
from kdoctor_checks.gpu.temperature import temperature
from kdoctor_recordings.checks.gpu.diagnostic_warnings import diagnostic_warnings
from kdoctor_recordings.facts import Diagnostic, Diagnostics

H100 = "NVIDIA H100 80GB HBM3"
FIRST, SECOND = f"GPU 0 ({bus_id(0)})", f"GPU 1 ({bus_id(1)})"


@pytest.mark.parametrize(
    ("reasons", "always", "ever"),
    [((), 0, 0), ((8, 8), 8, 8), ((8, 9, 12), 8, 13), ((1, 2), 0, 3)],  # the bits of all readings, and of any
)
def test_events_that_last_were_in_each_reading(reasons: tuple[int, ...], always: int, ever: int) -> None:
    assert (lasting(gpu(clock_event_reasons=reasons)), seen(gpu(clock_event_reasons=reasons))) == (always, ever)


def test_both_causes_of_the_hardware_are_named_together() -> None:
    heat, brake, hardware = 0x40, 0x80, 0x08  # nvml.h: nvmlClocksEventReason...
    assert "power brake" in cause(heat | brake | hardware)
    assert cause(heat | brake) != cause(heat) != cause(brake) != cause(hardware)


def test_clocks_are_stated_where_all_are_known() -> None:
    one, two = gpu(0, clock_sm_mhz=345), gpu(1, clock_sm_mhz=500)
    assert held([one], 0x40).startswith("held at 345 of 1980 MHz by ")
    assert held([one, two], 0x40).startswith("held at 345 to 500 of 1980 MHz by ")
    assert held([one, replace(two, clock_sm_mhz=None)], 0x40).startswith("slowed down by ")
    assert held([one, replace(two, clock_sm_max_mhz=1755)], 0x40).startswith("slowed down by ")
    assert clocks(one) == ", SM clock 345 of 1980 MHz"
    assert clocks(replace(one, clock_sm_mhz=None)) == ""
    assert clocks(replace(one, clock_sm_max_mhz=None)) == ""


def xid(code: int) -> KernelLogEvent:
    text = f"NVRM: Xid (PCI:{bus_id(0)[:-2]}): {code}, pid=1, name=python, text"
    (event,) = parse_log([text], source="/dev/kmsg", complete=False).events
    return event


def test_reset_names_the_gpu_and_needs_its_address() -> None:
    """NVIDIA's catalog: Xid 95, an uncontained memory error, needs a reset."""
    remedy, _ = recovery(bus_id(0), [xid(95)])
    assert remedy.commands == (f"sudo nvidia-smi --gpu-reset -i {bus_id(0)}",)
    assert remedy.action is Action.REBOOT
    without, _ = recovery(None, [xid(95)])
    assert not any("--gpu-reset" in command for command in without.commands)


def log(*lines: str) -> Any:
    return parse_log(lines, source="/dev/kmsg", complete=True)


def line(code: int, address: str = "0000:10:00") -> str:
    return f"NVRM: Xid (PCI:{address}): {code}, pid=1, name=python, text"


@pytest.mark.parametrize(
    ("lines", "explained"),
    [
        ((line(43), line(79)), True),  # 43 follows when the GPU fell off the bus
        ((line(43), line(45), line(79)), True),
        ((line(43),), False),
        ((line(13), line(79)), False),  # 13 is an error of the program
        ((line(43), line(79, "0000:20:00")), False),  # another GPU
    ],
)
def test_xid_that_follows_a_fault_of_the_same_gpu_is_explained(lines: tuple[str, ...], *, explained: bool) -> None:
    result = compute_check(application_xids, log(*lines), gpus(2))
    (judged,) = result.findings
    assert ("gpu.kernel-log" in judged.finding.explained_by) == explained


def counted_gpus(*names: str, recording: bool = True, **wanted: Any) -> Any:
    devices = tuple(gpu(index, name=name) for index, name in enumerate(names))
    missing: dict[type[FactGroup], str] = {
        Environment: not_collected(Environment).unavailable if recording else "the shell hung"
    }
    assumptions = Assumptions(gpus=GpuAssumption(**wanted)) if wanted else Assumptions()
    return compute_check(count_expected, gpus(len(devices), *devices), assumptions=assumptions, missing=missing)


@pytest.mark.parametrize(
    ("number", "wanted", "recording", "status"),
    [
        (1, {}, True, Status.PASS),
        (1, {}, False, Status.UNKNOWN),  # a variable may hide it
        (1, {"at_least": 2}, False, Status.FAIL),  # whatever the variable hides
        (2, {"at_least": 2}, False, Status.UNKNOWN),
        (2, {"count": 2}, True, Status.PASS),
        (3, {"count": 2}, True, Status.UNKNOWN),  # one may be hidden on purpose
        (1, {"count": 2}, True, Status.FAIL),
    ],
)
def test_unread_variable_matters_only_if_enough_gpus_respond(
    number: int,
    wanted: dict[str, int],
    *,
    recording: bool,
    status: Status,
) -> None:
    assert counted_gpus(*[H100] * number, recording=recording, **wanted).status is status


def test_models_are_listed_as_far_as_they_are_short() -> None:
    """60 characters fit."""
    assert briefs(counted_gpus(H100, H100)) == [f"2 x {H100}"]
    fits = "x" * (60 - len("1 x , 1 x b"))
    assert briefs(counted_gpus(fits, "b")) == [f"1 x {fits}, 1 x b"]
    assert briefs(counted_gpus(f"{fits}x", "b")) == ["2 GPUs of 2 models"]


def test_undo_of_a_lost_gpu_is_a_restart() -> None:
    from_lost = compute_check(
        count_expected, gpus(2, gpu(0), lost_gpu(1)), Environment(variables={}),
        assumptions=Assumptions(gpus=GpuAssumption(count=2)),
    ).findings[0].finding  # fmt: skip
    other = counted_gpus(H100, at_least=2).findings[0].finding
    assert from_lost.rollback == RESTART != other.rollback


def diagnosed(*statuses: str) -> Any:
    results = tuple(
        Diagnostic(tool="dcgmi diag", test=f"test{n}", subject="GPU 0", status=status)  # type: ignore[arg-type]
        for n, status in enumerate(statuses)
    )
    return compute_check(diagnostic_warnings, Diagnostics(results=results))


def test_tests_that_passed_are_counted() -> None:
    assert said(diagnosed("pass", "pass", "skip")) == {"diagnostics": "no warning in 2 tests"}
    assert said(diagnosed("pass", "fail")) == {"diagnostics": "no warning in 1 test"}
    assert diagnosed("skip").status is Status.SKIP
    assert diagnosed("pass", "warn").status is Status.FAIL


def limits(*watts: float, **parameters: Any) -> Any:
    devices = tuple(gpu(index, enforced_power_limit_w=limit) for index, limit in enumerate(watts))
    return compute_check(equal_power_limits, gpus(len(devices), *devices), **parameters)


def test_power_limits_may_differ_by_the_tolerance() -> None:
    assert limits(700, 700, 701).status is Status.PASS
    assert limits(700, 700, 701.5).status is Status.FAIL
    assert limits(700, 700, 698, tolerance_w=2).status is Status.PASS


def test_command_sets_the_usual_limit_of_the_model_on_each_odd_gpu() -> None:
    found = limits(700, 700, 500, 600)
    assert {judged.finding.remedy.commands for judged in found.findings} == {
        (f"sudo nvidia-smi -i {bus_id(2)},{bus_id(3)} -pl 700",)
    }
    assert [judged.finding.rollback.commands for judged in found.findings] == [
        (f"sudo nvidia-smi -i {bus_id(2)} -pl 500",),
        (f"sudo nvidia-smi -i {bus_id(3)} -pl 600",),
    ]
    assert briefs(found)[0] == "power limit 500 to 600 W, most have 700 W"
    two = compute_check(
        equal_power_limits,
        gpus(4, *(gpu(n, name="A" if n < 2 else "B", enforced_power_limit_w=400 - 100 * n) for n in range(4))),
    )
    commands = {judged.finding.remedy.commands[0] for judged in two.findings}
    assert commands == {f"sudo nvidia-smi -i {bus_id(1)} -pl 400", f"sudo nvidia-smi -i {bus_id(3)} -pl 200"}


def test_limit_of_memory_and_processes_is_stated() -> None:
    busy = gpus(1, gpu(0, memory_used_bytes=2 * GIB, processes=(GpuProcess(pid=1, used_memory_bytes=GIB),)))
    strict = compute_check(free, busy).findings[0].finding
    loose = compute_check(free, busy, allow_processes=True, max_used_mib=512).findings[0].finding
    assert strict.expected == "no compute process, and at most 1024 MiB used"
    assert loose.expected == "at most 512 MiB used"


@pytest.mark.parametrize(("used", "status"), [(20 * GIB, Status.PASS), (20 * GIB + MIB, Status.FAIL)])
def test_desktop_may_use_a_quarter_of_the_memory(used: int, status: Status) -> None:
    desktop = (GpuProcess(pid=9, used_memory_bytes=None),)
    screen = gpu(0, memory_total_bytes=80 * GIB, memory_used_bytes=used, graphics_processes=desktop)
    assert compute_check(free, gpus(1, screen)).status is status


@pytest.mark.parametrize(
    ("changes", "brief"),
    [
        ({"name": "NVIDIA A100"}, f"NVIDIA A100, not {H100}"),
        ({"memory_total_bytes": 40 * GIB}, "40.0 GiB of memory, most have 79.6 GiB"),
        ({"compute_capability": "8.0"}, "unlike most GPUs"),
    ],
)
def test_odd_gpu_says_what_differs(changes: dict[str, Any], brief: str) -> None:
    result = compute_check(same_model, gpus(3, gpu(0), gpu(1), gpu(2, **changes)))
    assert briefs(result)[0] == brief


@pytest.mark.parametrize(("share", "status"), [(0.98, Status.PASS), (0.979, Status.FAIL)])
def test_memory_may_differ_by_two_percent(share: float, status: Status) -> None:
    full = 100 * GIB
    devices = [gpu(index, memory_total_bytes=full) for index in range(2)]
    odd = gpu(2, memory_total_bytes=int(share * full) + (share == 0.98))
    assert compute_check(same_model, gpus(3, *devices, odd)).status is status


def test_remedy_chooses_the_identical_gpus() -> None:
    odd = gpu(2, name="NVIDIA A100")
    remedy = compute_check(same_model, gpus(3, gpu(0), gpu(1), odd)).findings[0].finding.remedy
    assert remedy.commands == (f"export CUDA_VISIBLE_DEVICES={gpu(0).uuid},{gpu(1).uuid}",)
    nameless = compute_check(same_model, gpus(3, gpu(0), gpu(1, uuid=None), odd)).findings[0].finding.remedy
    assert nameless.commands == ("export CUDA_DEVICE_ORDER=PCI_BUS_ID", "export CUDA_VISIBLE_DEVICES=0,1")


def hot(*margins: int) -> Any:
    devices = tuple(gpu(index, temperature_margin_c=margin) for index, margin in enumerate(margins))
    return compute_check(temperature, gpus(len(devices), *devices))


def test_margin_is_stated_above_and_below_the_threshold() -> None:
    assert said(hot(0))[FIRST] == "34 C, 0 C below the throttling threshold"
    assert said(hot(-1))[FIRST] == "34 C, 1 C above the throttling threshold"
    assert briefs(hot(0, 3, -2)) == [
        "0 to 3 C below the throttling threshold",
        "0 to 3 C below the throttling threshold",
        "above the throttling threshold",
    ]
    assert briefs(hot(4, 50))[0] == "4 C below the throttling threshold"
