"""No check passes if a field of a GPU that it needs was not read."""

from dataclasses import fields, replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.evidence.checks import CHECKS, healthy_status, judged
from helpers.facts import H100_LACKS, NOT_SUPPORTED, geforces, gpu, gpus, kernel, lost_gpu, pci, v100_workstation
from kdoctor.check import Check
from kdoctor.facts import FactGroup, Gpu, Gpus
from kdoctor.model import Status
from kdoctor_checks.gpu.readings import readings

READ_FOR_WORDS = """
    uuid performance_state architecture ecc_corrected_volatile ecc_corrected_aggregate ecc_uncorrected_aggregate
    remapped_rows_correctable remapped_rows_uncorrectable temperature_c temperature_slowdown_margin_c
    temperature_operating_max_c
    temperature_shutdown_margin_c temperature_slowdown_c temperature_shutdown_c power_draw_w clock_sm_mhz
    clock_sm_max_mhz clock_memory_mhz clock_memory_max_mhz utilization_gpu_percent utilization_memory_percent
    virtualization_mode addressing_mode cpu_affinity numa_affinity gpu_numa_id fan_speed_percent
    retired_pages_single_bit retired_pages_double_bit retired_pages_pending graphics_processes inforom_valid
""".split()  # noqa: SIM905 - a list of thirty quoted names is harder to read
"""Fields of a GPU that no check needs to pass on the H100 node. They describe a finding, matter on other GPUs or on
faulty ones, or have a second source (the CPUs near a GPU)."""

READ_BY: dict[str, set[str]] = {
    "index": set(),
    "name": {"gpu.model-expected", "gpu.same-model"},  # driver.forward-compatibility only with a compat libcuda
    "bus_id": {"gpu.visible-to-driver", "network.gpu-affinity"},
    "compute_capability": {
        "gpu.same-model",
        "versions.cudnn-for-gpus",
        "versions.driver-for-ptx",
        "versions.gpu-code",
        "versions.known-hazards",
    },
    "memory_total_bytes": {"gpu.resizable-bar", "gpu.same-model"},
    "memory_used_bytes": {"gpu.free"},
    "processes": {"gpu.free"},
    "pcie_generation": {"topology.pcie-generation"},
    "pcie_generation_max": {"topology.pcie-generation", "topology.pcie-slot"},
    "pcie_generation_gpu_max": {"topology.pcie-slot"},
    "pcie_replay_counter": {"topology.pcie-replays"},
    "minor_number": {"driver.device-nodes"},
    "bar1_total_bytes": {"gpu.resizable-bar"},
    "compute_mode": {"gpu.compute-mode", "gpu.exclusive-mode"},
    "persistence_mode": {"gpu.persistence-mode"},
    "mig_mode": {"gpu.mig-mode", "gpu.mig-mode-pending"},
    "mig_mode_pending": {"gpu.mig-mode-pending"},
    "ecc_mode": {"gpu.ecc-mode"},
    "ecc_mode_pending": {"gpu.ecc-mode"},
    "ecc_uncorrected_volatile": {"gpu.ecc-errors"},
    "sram_threshold_exceeded": {"gpu.sram-errors"},
    "remapped_rows_pending": {"gpu.row-remapping-pending"},
    "remapped_rows_failure": {"gpu.row-remapping"},
    "channel_repair_pending": {"gpu.repair-pending"},
    "tpc_repair_pending": {"gpu.repair-pending"},
    "unrepairable_memory": {"gpu.unrepairable-memory"},
    "recovery_action": {"gpu.recovery-action"},
    "temperature_margin_c": {"gpu.temperature"},
    "enforced_power_limit_w": {"gpu.equal-power-limits", "gpu.power-limit"},
    "default_power_limit_w": {"gpu.power-limit"},
    "clock_event_reasons": {"gpu.clocks", "gpu.clocks-limited", "gpu.thermal-slowdown"},
    "nvlinks": {"topology.nvlink", "topology.nvlink-direct"},
    "fabric_state": {"topology.fabric"},
    "fabric_status": {"topology.fabric"},
    "fabric_problems": {"topology.fabric"},
    "answers_s": {"gpu.response-time"},
    "pcie_width": {"topology.pcie-width"},
    "pcie_width_max": {"topology.pcie-width"},
    "errors": set(),
    **{name: set[str]() for name in READ_FOR_WORDS},
}
"""Field of a GPU to the checks that need it to pass on a healthy machine."""


def test_every_field_of_a_gpu_is_listed() -> None:
    assert {field.name for field in fields(Gpu)} - {"numbered"} == set(READ_BY)


def without(device: Gpu, field: str, error: str) -> Gpu:
    changes: dict[str, Any] = {field: None, "errors": {**device.errors, field: error}}
    return replace(device, **changes)


OLDER_DRIVER = {"NVML_ERROR_FUNCTION_NOT_FOUND"}
NEWEST = {"fabric_problems", "channel_repair_pending", "tpc_repair_pending", "unrepairable_memory"}
"""Fields that only the newest drivers report."""
READ_FIELDS = sorted(set(READ_BY) - {"index", "errors"} - set(H100_LACKS))
ERRORS = ("NVML_ERROR_UNKNOWN", NOT_SUPPORTED, "NVML_ERROR_FUNCTION_NOT_FOUND")


def with_an_unread_field(field: str, error: str) -> Gpus:
    return gpus(8, *(without(gpu(3), field, error) if index == 3 else gpu(index) for index in range(8)))


@pytest.mark.parametrize(("number", "field"), [*enumerate(READ_FIELDS)])
def test_unread_field_of_one_gpu_does_not_pass(number: int, field: str) -> None:
    """Not even if NVML returns "not supported" for one GPU and a value for equal GPUs."""
    found = with_an_unread_field(field, ERRORS[number % 3])
    for check in CHECKS:
        # If the GPUs do not report their registration, the process of the fabric manager is judged.
        if Gpus in check.facts.values() and check.id not in {"gpu.readings", "topology.fabric-manager"}:
            result = judged(check, found)
            expected = Status.UNKNOWN if check.id in READ_BY[field] else healthy_status(check)
            assert result.status is expected, check.id
            assert len(result.unjudged) <= 2, check.id


@pytest.mark.parametrize("field", READ_FIELDS)
@pytest.mark.parametrize("error", ERRORS)
def test_unread_field_of_one_gpu_is_named(field: str, error: str) -> None:
    status = judged(readings, with_an_unread_field(field, error)).status
    is_excused = error == NOT_SUPPORTED or field == "fabric_status" or (error in OLDER_DRIVER and field in NEWEST)
    assert status is (Status.PASS if is_excused else Status.UNKNOWN)


@cases(
    ("v100", "retired_pages_single_bit", {"gpu.retired-pages"}),
    ("v100", "retired_pages_double_bit", {"gpu.retired-pages"}),
    ("v100", "retired_pages_pending", {"gpu.retired-pages-pending"}),
    ("v100", "temperature_c", {"gpu.temperature"}),
    ("v100", "temperature_slowdown_c", {"gpu.temperature"}),
    ("v100", "fan_speed_percent", {"gpu.fan"}),
    ("v100", "nvlinks", {"topology.nvlink-direct"}),
    ("geforce", "fan_speed_percent", {"gpu.fan"}),
    ("geforce", "temperature_c", {"gpu.fan"}),
    ("geforce", "performance_state", {"topology.pcie-generation"}),
)
def test_unread_field_of_other_gpu_families_does_not_pass(machine: str, field: str, check_ids: set[str]) -> None:
    others: tuple[FactGroup, ...] = v100_workstation() if machine == "v100" else (geforces(2), pci(2), kernel(2))
    healthy = next(group for group in others if isinstance(group, Gpus))
    *rest, last = healthy.devices
    broken = replace(healthy, devices=(*rest, without(last, field, "NVML_ERROR_UNKNOWN")))
    for check in CHECKS:
        if check.id in check_ids:
            assert judged(check, *others).status is not Status.UNKNOWN, check.id
            assert judged(check, *others, broken).status is Status.UNKNOWN, check.id


@pytest.mark.parametrize(
    "check", [check for check in CHECKS if Gpus in check.facts.values()], ids=lambda check: check.id
)
def test_lost_gpu_never_passes_and_does_not_affect_other_gpus(check: Check) -> None:
    found = gpus(8, *(lost_gpu(3) if index == 3 else gpu(index) for index in range(8)))
    result = judged(check, found)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    others = [subject for subject in named if subject.startswith("GPU ") and subject[:5] not in ("GPU 3", "GPU a")]
    pairs = [subject for subject in others if " - " in subject]
    assert set(others) <= set(pairs)
    assert all("GPU 3" in pair for pair in pairs)
    if result.status is Status.PASS and check.family in {"driver", "gpu", "topology"}:
        listed = {item.subject for item in result.evidence if item.subject.startswith("GPU ")}
        assert len(listed) in {0, 8}
