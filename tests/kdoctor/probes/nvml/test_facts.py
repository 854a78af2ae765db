"""Every fact of a GPU, and edge cases, through the real binding, from whole machines."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from helpers import machines
from helpers.cases import cases
from helpers.facts import gpu
from helpers.machines import Description
from helpers.machines.healthy import rtx4090_eight
from helpers.machines.peculiar import mig_on, vgpu
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


def test_h100_is_read_as_the_other_tests_describe_it() -> None:
    found = machines.gpus("h100-nvswitch")
    first = found.devices[0]
    read_elsewhere = {"uuid": first.uuid, "nvlinks": first.nvlinks, "answers_s": first.answers_s}
    of_newer_drivers = ("channel_repair_pending", "fabric_problems", "tpc_repair_pending", "unrepairable_memory")
    of_other_gpus = (
        "fan_speed_percent", "gpu_numa_id", "retired_pages_double_bit", "retired_pages_pending",
        "retired_pages_single_bit", "temperature_operating_max_c", "temperature_shutdown_c", "temperature_slowdown_c",
    )  # fmt: skip
    described = gpu(
        0, bus_id="0000:19:00.0", temperature_c=41, temperature_margin_c=46, power_draw_w=70.0, clock_sm_mhz=396,
        errors=dict.fromkeys((*of_newer_drivers, *of_other_gpus), NOT_SUPPORTED),
        **dict.fromkeys(of_newer_drivers), **read_elsewhere,
    )  # fmt: skip
    assert first == described
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


def test_p2p_statuses_are_translated() -> None:
    pairs = read(rtx4090_eight(), **{f"pair__0__{status + 1}__p2p_read": status for status in range(7)}).pairs[:7]
    assert [pair.p2p_read for pair in pairs] == ["OK", "CNS", "GNS", "TNS", "DR", "NS", None]
    assert [number for number, pair in enumerate(pairs) if "p2p_read" in pair.errors] == [6]


HEALTH: dict[int, tuple[str, ...] | None] = {
    0x0000: None,
    0x01AA: (),
    0x01A9: ("bandwidth: Degraded",),
    0x019A: ("route unhealthy: True",),
    0x05AA: ("incorrect configuration: Insufficient NVLinks",),
    0x0FAA: ("incorrect configuration: unknown value 15",),
    0x0466: (
        "route recovery in progress: True",
        "access timeout recovery: True",
        "incorrect configuration: No Partition",
    ),
}
"""The masks are built from NVML's constants: two bits each, and four for the configuration."""


def test_health_of_the_fabric() -> None:
    """GPU by GPU, each with one of the masks."""
    masks = {f"gpu__{index}__fabric_health": mask for index, mask in enumerate(HEALTH)}
    devices = read(machines.h100_nvswitch(), **masks).devices
    assert [device.fabric_problems for device in devices[:7]] == list(HEALTH.values())
    unread = [device.errors.get("fabric_problems") == NOT_SUPPORTED for device in devices]
    assert unread == [True, *[False] * 6, True]


def test_summary_counts_without_a_reason() -> None:
    assert fabric_problems(0x01AA, 2) == ("summary: Unhealthy",)
    assert fabric_problems(0x01AA, 1) == ()


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


def fabric(state: int, status: int, *stated: str | None) -> Any:
    lines = {"fabric_state": state, "fabric_status": status}
    return machines.h100_nvswitch, lines, dict(zip(("fabric_state", "fabric_status"), stated, strict=True))


TWO_L4 = machines.l4_two_one_x1
REPAIRS = ("channel_repair_pending", "tpc_repair_pending", "unrepairable_memory")


@cases(
    (machines.h100_nvswitch, dict(zip(REPAIRS, (1, 0, 1), strict=True)), dict(zip(REPAIRS, (1, 0, 1), strict=True))),
    (TWO_L4, {"clock_event_reasons": "0x8,0x0,0x1"}, {"clock_event_reasons": (8, 0, 1)}),
    (TWO_L4, {"addressing_mode": 9, "performance_state": 32}, {"addressing_mode": None, "performance_state": None}),
    (TWO_L4, {"bus_id": "00000008:0A:00.0"}, {"bus_id": "0008:0a:00.0"}),
    (rtx4090_eight, {}, {"pcie_generation": 1, "pcie_generation_max": 4, "performance_state": 8}),
    (rtx4090_eight, {}, {"remapped_rows_pending": False, "ecc_mode": None, "sram_threshold_exceeded": None}),
    (
        TWO_L4,
        {"processes": "4711:1048576,4712:-"},
        {
            "processes": (
                GpuProcess(pid=4711, used_memory_bytes=1048576, name="python3"),
                GpuProcess(pid=4712, used_memory_bytes=None, name=None),
            )
        },
    ),
    (mig_on, {}, {"mig_mode": True, "mig_mode_pending": True, "ecc_uncorrected_aggregate": 0}),
    (mig_on, {}, dict.fromkeys(("ecc_uncorrected_volatile", "remapped_rows_failure"))),
    (machines.a100_nvlink, {"mig_mode_pending": 1}, {"mig_mode": False, "mig_mode_pending": True}),
    # Thresholds as offsets are not temperatures: signed, unsigned, zero, and hot.
    (TWO_L4, {"field.194": -2}, {"temperature_slowdown_margin_c": -2, "temperature_slowdown_c": None}),
    (TWO_L4, {"field.194": 4294967294}, {"temperature_slowdown_margin_c": -2, "temperature_slowdown_c": None}),
    (TWO_L4, {"field.194": 0}, {"temperature_slowdown_margin_c": 0, "temperature_slowdown_c": None}),
    (TWO_L4, {"field.194": 90}, {"temperature_slowdown_margin_c": None, "temperature_slowdown_c": None}),
    (
        machines.a100_nvlink,
        {},
        {"temperature_slowdown_c": 89, "temperature_shutdown_c": 92, "temperature_margin_c": None},
    ),
    # Each value of a field has a return code.
    (TWO_L4, {"field.230": "!13", "field.31": 1}, {"recovery_action": None, "retired_pages_pending": True}),
    *(
        (TWO_L4, {"field.230": number}, {"recovery_action": word})
        for number, word in enumerate(("reset", "reboot", "drain-p2p", "drain-and-reset"), 1)
    ),
    (TWO_L4, {"compute_mode": 2}, {"compute_mode": "prohibited"}),
    (TWO_L4, {"compute_mode": 3}, {"compute_mode": "exclusive-process"}),
    (TWO_L4, {"compute_mode": 7}, {"compute_mode": None}),
    fabric(3, 0, "completed", "success"),
    fabric(3, 999, "completed", "NVML_ERROR_UNKNOWN"),
    fabric(2, 0, "in-progress", None),
    fabric(1, 0, "not-started", None),
    (vgpu, {}, {"virtualization_mode": "vgpu", "pcie_width": None, "clock_event_reasons": None}),
)
def test_readings_of_a_gpu(
    machine: Callable[[], Description], lines: Mapping[str, str | int], expected: Mapping[str, object]
) -> None:
    made = machine()
    changed = {f"gpu.0.{name}": value for name, value in lines.items()} | {"system.process.4711": "python3"}
    device = first(Description(nvml=made.nvml.also(changed), tree=made.tree))
    assert {name: getattr(device, name) for name in expected} == expected
    unread = {name for name, value in expected.items() if value is None}
    assert unread - {"fabric_status", "performance_state", "temperature_slowdown_c"} <= device.errors.keys()


def test_narrow_link_has_its_width() -> None:
    found = machines.gpus("l4-one-x1")
    assert [(gpu.pcie_width, gpu.pcie_width_max, gpu.performance_state) for gpu in found.devices] == [
        (16, 16, 0),
        (1, 16, 0),
    ]


def test_offset_instead_of_absolute_threshold_is_rejected() -> None:
    gpu = first(machines.a100_nvlink(), gpu__0__temperature_slowdown=-2)
    assert gpu.temperature_slowdown_c is None
    assert "-2" in gpu.errors["temperature_slowdown_c"]


def test_confidential_computing_without_a_multi_gpu_mode() -> None:
    found = read(machines.h100_nvswitch(2), system__conf_compute=1, system__conf_compute_ready=0)
    assert (found.conf_compute, found.conf_compute_multi_gpu, found.conf_compute_ready) == (True, "none", False)


def test_unchecked_binding_call_is_checked() -> None:
    found = read(machines.h100_nvswitch(2), call__nvmlSystemGetConfComputeSettings=4)
    assert found.conf_compute_multi_gpu is None
    assert found.errors == {"conf_compute_multi_gpu": "NVML_ERROR_NO_PERMISSION"}


def test_lost_gpu_leaves_other_gpus_readable() -> None:
    found = machines.gpus("one-gpu-lost")
    assert found.count == 4
    assert found.devices[2].errors == {"handle": "NVML_ERROR_GPU_IS_LOST"}
    counts = {(pair.first, pair.second): pair.nvlinks for pair in found.pairs}
    assert counts == {(0, 1): 4, (0, 2): None, (0, 3): 4, (1, 2): None, (1, 3): 4, (2, 3): None}


def test_unopenable_device_nodes_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "dev"
    (folder / "nvidia-caps").mkdir(parents=True)
    (folder / "nvidiactl").write_text("")
    (folder / "nvidia0").symlink_to("gone")
    assert node_errors(tmp_path) == {"/dev/nvidia0": "ENOENT"}
