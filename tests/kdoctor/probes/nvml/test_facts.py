"""Every fact of a GPU, and edge cases, through the real binding, from whole machines."""

import sys
from pathlib import Path
from typing import Any

import pytest

from helpers import machines
from helpers.cases import cases
from helpers.machines import Description
from kdoctor.facts import Gpu, GpuProcess, Gpus, NvLink
from kdoctor.probes.nvml.calls.one_gpu import fabric_problems
from kdoctor.probes.nvml.child import node_errors

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="libnvidia-ml.so.1 is Linux'")]

NOT_SUPPORTED = "NVML_ERROR_NOT_SUPPORTED"


def read(machine: Description, **lines: str | int) -> Gpus:
    """The GPUs of a machine with some lines changed; ``__`` in a key means a dot."""
    changed = Description(nvml=machine.nvml.with_lines(**lines), tree=machine.tree, deadline_s=machine.deadline_s)
    found = machines.collected(changed)[Gpus]
    assert isinstance(found, Gpus), found
    return found


def first(machine: Description, **lines: str | int) -> Gpu:
    return read(machine, **lines).devices[0]


def test_h100_reports_all_fields() -> None:
    found = machines.gpus("h100-nvswitch")
    gpu = found.devices[0]
    expected: dict[str, Any] = {
        "name": "NVIDIA H100 80GB HBM3",
        "architecture": "Hopper",
        "minor_number": 0,
        "pcie_generation_gpu_max": 5,
        "pcie_replay_counter": 43,
        "bar1_total_bytes": 131072 * 1024**2,
        "compute_mode": "default",
        "persistence_mode": True,
        "mig_mode": False,
        "mig_mode_pending": False,
        "ecc_mode": True,
        "ecc_mode_pending": True,
        "ecc_corrected_volatile": 0,
        "ecc_uncorrected_volatile": 0,
        "ecc_corrected_aggregate": 0,
        "ecc_uncorrected_aggregate": 0,
        "sram_threshold_exceeded": False,
        "remapped_rows_correctable": 0,
        "remapped_rows_uncorrectable": 0,
        "remapped_rows_pending": False,
        "remapped_rows_failure": False,
        "recovery_action": "none",
        "temperature_c": 41,
        "temperature_margin_c": 46,
        "temperature_slowdown_margin_c": -2,
        "temperature_shutdown_margin_c": -8,
        "power_draw_w": 70.0,
        "enforced_power_limit_w": 700.0,
        "default_power_limit_w": 700.0,
        "clock_sm_mhz": 396,
        "clock_sm_max_mhz": 1980,
        "clock_memory_mhz": 2619,
        "clock_memory_max_mhz": 2619,
        "clock_event_reasons": (1, 1, 1),
        "utilization_gpu_percent": 0,
        "utilization_memory_percent": 0,
        "fabric_state": "completed",
        "fabric_status": "success",
        "virtualization_mode": "none",
        "addressing_mode": "none",
        "cpu_affinity": tuple(range(112)),
        "numa_affinity": (0,),
    }
    assert {name: getattr(gpu, name) for name in expected} == expected
    lacking = {
        "channel_repair_pending",
        "fabric_problems",
        "fan_speed_percent",
        "gpu_numa_id",
        "retired_pages_double_bit",
        "retired_pages_pending",
        "retired_pages_single_bit",
        "temperature_shutdown_c",
        "temperature_slowdown_c",
        "tpc_repair_pending",
        "unrepairable_memory",
    }
    assert gpu.errors == dict.fromkeys(lacking, NOT_SUPPORTED)
    assert found.devices[7].cpu_affinity == tuple(range(112, 224))
    assert (found.nvml_version, found.conf_compute, found.conf_compute_multi_gpu, found.conf_compute_ready) == (
        "12.570.158.01",
        False,
        "none",
        True,
    )
    assert (found.errors, found.node_errors) == ({}, {})


def test_nvlinks_into_switches() -> None:
    found = machines.gpus("h100-nvswitch")
    links = found.devices[3].nvlinks
    assert links is not None
    assert len(links) == 18
    assert links[5] == NvLink(
        index=5, active=True, version=4, speed_gbs=26.562, remote_bus_id="0000:84:00.0", remote_kind="switch"
    )
    assert {pair.nvlinks for pair in found.pairs} == {18}


def test_nvlinks_between_gpus() -> None:
    found = machines.gpus("a100-nvlink")
    assert {pair.nvlinks for pair in found.pairs} == {4}
    links = found.devices[0].nvlinks
    assert links is not None
    assert (links[0].version, links[0].speed_gbs, links[0].remote_kind) == (3, 25.0, "gpu")
    assert [link.remote_bus_id for link in links[::4]] == ["0000:41:00.0", "0000:81:00.0", "0000:c1:00.0"]


def test_inactive_links_do_not_count_for_a_pair() -> None:
    found = machines.gpus("a100-pcie")
    links = found.devices[0].nvlinks
    assert links is not None
    assert [link.active for link in links] == [False] * 12
    assert {pair.nvlinks for pair in found.pairs} == {0}


def test_gpu_without_nvlink_is_not_supported() -> None:
    found = machines.gpus("rtx4090")
    assert (found.devices[0].nvlinks, found.devices[0].errors["nvlinks"]) == (None, NOT_SUPPORTED)
    assert {pair.nvlinks for pair in found.pairs} == {None}
    assert found.pairs[0].errors == {"nvlinks": NOT_SUPPORTED}


def test_one_inactive_link_of_a_pair() -> None:
    found = read(machines.a100_nvlink(), gpu__0__nvlink__0__active=0)
    counts = {(pair.first, pair.second): pair.nvlinks for pair in found.pairs}
    assert counts == {(0, 1): 3, (0, 2): 4, (0, 3): 4, (1, 2): 4, (1, 3): 4, (2, 3): 4}


def test_links_are_tried_if_their_number_is_unknown() -> None:
    machine = machines.a100_nvlink()
    uncounted = {f"gpu.{index}.nvlink_count": "-" for index in range(4)}
    found = read(Description(nvml=machine.nvml.also(uncounted), tree=machine.tree))
    assert [len(gpu.nvlinks or ()) for gpu in found.devices] == [12] * 4


def test_speeds_by_their_older_field_ids() -> None:
    machine = machines.a100_nvlink()
    lines: dict[str, str | int] = {"gpu.0.nvlink.*.speed_mbps": "-"}
    lines |= {f"gpu.0.field.{number}": 25781 for number in (84, 85, 86, 87, 88, 89, *range(132, 138))}
    links = first(Description(nvml=machine.nvml.also(lines), tree=machine.tree)).nvlinks
    assert links is not None
    assert {link.speed_gbs for link in links} == {25.781}


def test_link_with_hidden_remote_keeps_other_fields() -> None:
    machine = machines.h100_nvswitch(2)
    hidden = {f"gpu.0.nvlink.{link}.remote_bus_id": "-" for link in range(18)}
    found = read(Description(nvml=machine.nvml.also(hidden), tree=machine.tree))
    links = found.devices[0].nvlinks
    assert links is not None
    assert (links[0].remote_bus_id, links[0].remote_kind, links[0].errors) == (
        None,
        "switch",
        {"remote_bus_id": NOT_SUPPORTED},
    )
    assert found.pairs[0].nvlinks == 18


def test_levels_match_the_pci_trees() -> None:
    found = machines.gpus("a100-pcie")
    levels = {(pair.first, pair.second): pair.level for pair in found.pairs}
    assert (levels[0, 1], levels[0, 2], levels[0, 4]) == ("PIX", "PHB", "SYS")


@cases((0, "OK"), (1, "CNS"), (2, "GNS"), (3, "TNS"), (4, "DR"), (5, "NS"), (6, None))
def test_p2p_status_is_translated(number: int, word: str | None) -> None:
    (pair,) = read(machines.l4_two_one_x1(), **{"pair__*__p2p_read": number}).pairs
    assert (pair.p2p_read, pair.p2p_write) == (word, "OK")
    assert ("p2p_read" in pair.errors) == (word is None)


@cases(
    (0x0000, None),
    (0x01AA, ()),
    (0x01A9, ("bandwidth: Degraded",)),
    (0x019A, ("route unhealthy: True",)),
    (0x05AA, ("incorrect configuration: Insufficient NVLinks",)),
    (0x0FAA, ("incorrect configuration: unknown value 15",)),
    (
        0x0466,
        ("route recovery in progress: True", "access timeout recovery: True", "incorrect configuration: No Partition"),
    ),
)
def test_health_of_the_fabric(mask: int, problems: tuple[str, ...] | None) -> None:
    """The masks are built from NVML's constants: two bits each, and four for the configuration."""
    device = first(machines.h100_nvswitch(2), gpu__0__fabric_health=mask)
    assert device.fabric_problems == problems
    assert (device.errors.get("fabric_problems") == NOT_SUPPORTED) == (problems is None)


def test_summary_counts_without_a_reason() -> None:
    assert fabric_problems(0x01AA, 2) == ("summary: Unhealthy",)
    assert fabric_problems(0x01AA, 1) == ()


def test_repairs_and_memory_beyond_repair() -> None:
    facts = {"gpu__0__channel_repair_pending": 1, "gpu__0__tpc_repair_pending": 0, "gpu__0__unrepairable_memory": 1}
    device = first(machines.h100_nvswitch(2), **facts)
    assert (device.channel_repair_pending, device.tpc_repair_pending, device.unrepairable_memory) == (True, False, True)


def test_corrupted_inforom_is_an_error() -> None:
    machine = machines.h100_nvswitch(2)
    broken = machine.nvml.order("nvmlDeviceValidateInforom", 14, gpu=0)
    found = read(Description(nvml=broken, tree=machine.tree))
    assert [gpu.inforom_valid for gpu in found.devices] == [None, True]
    assert found.devices[0].errors["inforom_valid"] == "NVML_ERROR_CORRUPTED_INFOROM"


def test_processes_with_a_graphics_context() -> None:
    device = first(machines.l4_two_one_x1(), gpu__0__graphics_processes="1900:4096")
    assert [process.pid for process in device.graphics_processes or ()] == [1900]
    assert device.processes == ()


# --- edge cases -------------------------------------------------------------------------------------------------


def test_power_brake_on_all_gpus_with_perfect_pcie() -> None:
    brake = {f"gpu.{index}.clock_event_reasons": 0x88 for index in range(8)}
    slow = {f"gpu.{index}.clock_sm": 86 for index in range(8)}
    machine = machines.h100_nvswitch()
    found = read(Description(nvml=machine.nvml.also(brake).also(slow), tree=machine.tree))
    assert {gpu.clock_event_reasons for gpu in found.devices} == {(0x88, 0x88, 0x88)}
    assert {(gpu.clock_sm_mhz, gpu.clock_sm_max_mhz, gpu.pcie_width) for gpu in found.devices} == {(86, 1980, 16)}


def test_event_reason_without_its_group_bit_is_kept() -> None:
    found = read(machines.h100_nvswitch(), gpu__5__clock_event_reasons=0x80)
    assert [gpu.index for gpu in found.devices if gpu.clock_event_reasons == (0x80,) * 3] == [5]


def test_transient_event_reason_is_in_one_reading() -> None:
    assert first(machines.l4_two_one_x1(), gpu__0__clock_event_reasons="0x8,0x0,0x1").clock_event_reasons == (8, 0, 1)


def test_unknown_addressing_mode_is_none() -> None:
    gpu = first(machines.l4_two_one_x1(), gpu__0__addressing_mode=9)
    assert (gpu.addressing_mode, gpu.errors["addressing_mode"]) == (None, "unknown value 9")


def test_idle_4090_runs_at_generation_1() -> None:
    gpu = machines.gpus("rtx4090").devices[0]
    assert (gpu.pcie_generation, gpu.pcie_generation_max, gpu.performance_state) == (1, 4, 8)


def test_row_remapping_of_4090_is_read() -> None:
    gpu = machines.gpus("rtx4090").devices[0]
    assert (gpu.remapped_rows_pending, gpu.ecc_mode, gpu.sram_threshold_exceeded) == (False, None, None)


def test_minor_numbers_in_reverse() -> None:
    found = machines.gpus("l4-one-x1")
    assert [(gpu.index, gpu.minor_number) for gpu in found.devices] == [(0, 1), (1, 0)]


def test_narrow_link_has_its_width() -> None:
    found = machines.gpus("l4-one-x1")
    assert [(gpu.pcie_width, gpu.pcie_width_max, gpu.performance_state) for gpu in found.devices] == [
        (16, 16, 0),
        (1, 16, 0),
    ]


def test_compute_processes_have_names() -> None:
    gpu = first(machines.l4_two_one_x1(), gpu__0__processes="4711:1048576,4712:-", system__process__4711="python3")
    assert gpu.processes == (
        GpuProcess(pid=4711, used_memory_bytes=1048576, name="python3"),
        GpuProcess(pid=4712, used_memory_bytes=None, name=None),
    )


def test_numa_affinity_of_one_gpu_of_two() -> None:
    found = read(machines.l4_two_one_x1(), gpu__1__numa_affinity="-")
    assert [gpu.numa_affinity for gpu in found.devices] == [(0,), None]
    assert found.devices[1].errors["numa_affinity"] == NOT_SUPPORTED


def test_many_fields_are_unsupported_under_mig() -> None:
    gpu = machines.gpus("mig-on").devices[0]
    assert (gpu.mig_mode, gpu.mig_mode_pending) == (True, True)
    for name in ("ecc_uncorrected_volatile", "remapped_rows_failure", "utilization_gpu_percent"):
        assert (getattr(gpu, name), gpu.errors[name]) == (None, NOT_SUPPORTED)
    assert gpu.ecc_uncorrected_aggregate == 0


def test_pending_mig_mode() -> None:
    gpu = first(machines.a100_nvlink(), gpu__0__mig_mode_pending=1)
    assert (gpu.mig_mode, gpu.mig_mode_pending) == (False, True)


@cases((-2, -2), (4294967294, -2), (0, 0), (90, None), ids=["signed", "unsigned", "zero", "hot"])
def test_offset_thresholds_are_not_temperatures(slowdown: int, margin: int | None) -> None:
    gpu = first(machines.l4_two_one_x1(), gpu__0__field__194=slowdown)
    assert (gpu.temperature_slowdown_margin_c, gpu.temperature_slowdown_c) == (margin, None)


def test_offset_instead_of_absolute_threshold_is_rejected() -> None:
    gpu = first(machines.a100_nvlink(), gpu__0__temperature_slowdown=-2)
    assert gpu.temperature_slowdown_c is None
    assert "-2" in gpu.errors["temperature_slowdown_c"]


def test_absolute_thresholds() -> None:
    gpu = machines.gpus("a100-nvlink").devices[0]
    assert (gpu.temperature_slowdown_c, gpu.temperature_shutdown_c, gpu.temperature_margin_c) == (89, 92, None)


def test_each_field_value_has_a_return_code() -> None:
    gpu = first(machines.l4_two_one_x1(), gpu__0__field__230="!13", gpu__0__field__31=1)
    assert (gpu.recovery_action, gpu.errors["recovery_action"]) == (None, "NVML_ERROR_FUNCTION_NOT_FOUND")
    assert gpu.retired_pages_pending is True
    assert gpu.temperature_slowdown_margin_c == -2


@pytest.mark.parametrize(("number", "word"), [(1, "reset"), (2, "reboot"), (3, "drain-p2p"), (4, "drain-and-reset")])
def test_recovery_actions(number: int, word: str) -> None:
    assert first(machines.l4_two_one_x1(), gpu__0__field__230=number).recovery_action == word


@pytest.mark.parametrize(("number", "word"), [(2, "prohibited"), (3, "exclusive-process"), (7, None)])
def test_compute_mode_is_translated(number: int, word: str | None) -> None:
    assert first(machines.l4_two_one_x1(), gpu__0__compute_mode=number).compute_mode == word


@cases(
    (3, 0, ("completed", "success")),
    (3, 999, ("completed", "NVML_ERROR_UNKNOWN")),
    (2, 0, ("in-progress", None)),
    (1, 0, ("not-started", None)),
)
def test_fabric_states(state: int, status: int, expected: tuple[str, str | None]) -> None:
    gpu = first(machines.h100_nvswitch(2), gpu__0__fabric_state=state, gpu__0__fabric_status=status)
    assert (gpu.fabric_state, gpu.fabric_status) == expected


def test_confidential_computing_without_a_multi_gpu_mode() -> None:
    found = read(machines.h100_nvswitch(2), system__conf_compute=1, system__conf_compute_ready=0)
    assert (found.conf_compute, found.conf_compute_multi_gpu, found.conf_compute_ready) == (True, "none", False)


def test_unchecked_binding_call_is_checked() -> None:
    found = read(machines.h100_nvswitch(2), call__nvmlSystemGetConfComputeSettings=4)
    assert found.conf_compute_multi_gpu is None
    assert found.errors == {"conf_compute_multi_gpu": "NVML_ERROR_NO_PERMISSION"}


def test_gpu_that_needs_a_reset_does_not_affect_others() -> None:
    machine = machines.a100_nvlink()
    needs_reset = Description(nvml=machine.nvml.order("*", 16, gpu=1), tree=machine.tree)
    found = read(needs_reset)
    assert found.devices[1].errors == {"handle": "NVML_ERROR_RESET_REQUIRED"}
    assert [gpu.name is None for gpu in found.devices] == [False, True, False, False]
    assert [pair.level is None for pair in found.pairs] == [True, False, False, True, True, False]


def test_lost_gpu_leaves_other_gpus_readable() -> None:
    found = machines.gpus("one-gpu-lost")
    assert found.count == 4
    assert found.devices[2].errors == {"handle": "NVML_ERROR_GPU_IS_LOST"}
    counts = {(pair.first, pair.second): pair.nvlinks for pair in found.pairs}
    assert counts == {(0, 1): 4, (0, 2): None, (0, 3): 4, (1, 2): None, (1, 3): 4, (2, 3): None}


def test_vgpu_has_its_virtualization_mode() -> None:
    gpu = machines.gpus("vgpu").devices[0]
    assert (gpu.virtualization_mode, gpu.pcie_width, gpu.clock_event_reasons) == ("vgpu", None, None)


def test_sixteen_gpus_have_each_pair_once() -> None:
    found = machines.gpus("a100-sixteen")
    assert len({(pair.first, pair.second) for pair in found.pairs}) == len(found.pairs) == 16 * 15 // 2
    assert all(pair.first < pair.second and pair.level for pair in found.pairs)


def test_unopenable_device_nodes_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "dev"
    (folder / "nvidia-caps").mkdir(parents=True)
    (folder / "nvidiactl").write_text("")
    (folder / "nvidia0").symlink_to("gone")
    assert node_errors(tmp_path) == {"/dev/nvidia0": "ENOENT"}
