from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import UUID, group, imported, imported_gpus, query
from kdoctor.facts import GpuProcess, Gpus, KernelDriver
from kdoctor.facts.gpus import EVENT_SW_POWER_CAP
from kdoctor_recordings.facts import ImportedLines

MIB = 1024**2


def test_entries_become_facts(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, query("3B", "AF"))
    assert (gpus.state, gpus.driver_version, gpus.cuda_driver_version, gpus.count) == ("ready", "535.161.08", "12.2", 2)
    gpu = gpus.devices[1]
    expected: dict[str, Any] = {
        "index": 1,
        "name": "NVIDIA Test 40GB",
        "architecture": "Ampere",
        "uuid": UUID.format(1),
        "bus_id": "0000:af:00.0",
        "minor_number": 1,
        "persistence_mode": True,
        "addressing_mode": "none",
        "mig_mode": False,
        "mig_mode_pending": False,
        "virtualization_mode": "none",
        "pcie_generation": 4,
        "pcie_generation_max": 4,
        "pcie_generation_gpu_max": 4,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "pcie_replay_counter": 12,
        "performance_state": 0,
        "clock_event_reasons": (EVENT_SW_POWER_CAP,),
        "memory_total_bytes": 40960 * MIB,
        "memory_used_bytes": 1200 * MIB,
        "bar1_total_bytes": 65536 * MIB,
        "compute_mode": "default",
        "utilization_gpu_percent": 75,
        "utilization_memory_percent": 20,
        "ecc_mode": True,
        "ecc_mode_pending": True,
        "ecc_corrected_volatile": 31,
        "ecc_uncorrected_volatile": 6,
        "ecc_corrected_aggregate": 10,
        "ecc_uncorrected_aggregate": 20,
        "sram_threshold_exceeded": True,
        "remapped_rows_correctable": 0,
        "remapped_rows_uncorrectable": 11,
        "remapped_rows_pending": True,
        "remapped_rows_failure": False,
        "temperature_c": 61,
        "temperature_margin_c": 25,
        "temperature_slowdown_margin_c": -2,
        "temperature_shutdown_margin_c": -7,
        "power_draw_w": 210.5,
        "enforced_power_limit_w": 250.0,
        "default_power_limit_w": 300.0,
        "clock_sm_mhz": 1110,
        "clock_sm_max_mhz": 1410,
        "clock_memory_mhz": 1215,
        "clock_memory_max_mhz": 1215,
        "fabric_state": "in-progress",
        "processes": (
            GpuProcess(pid=4711, used_memory_bytes=1190 * MIB, name="/opt/job/bin/python"),
            GpuProcess(pid=4712, used_memory_bytes=None, name="/opt/job/bin/python"),
        ),
    }
    assert {name: getattr(gpu, name) for name in expected} == expected


def test_missing_reading_is_unknown_with_reason(tmp_path: Path) -> None:
    gpu = imported_gpus(tmp_path, query("3B")).devices[0]
    reasons = {
        "fan_speed_percent": "N/A",
        "retired_pages_pending": "N/A",
        "fabric_status": "N/A",
        "compute_capability": "not in nvidia-smi -q",
        "nvlinks": "not in nvidia-smi -q",
        "cpu_affinity": "not in nvidia-smi -q",
    }
    assert {name: gpu.errors[name] for name in reasons} == reasons
    assert all(getattr(gpu, name) is None for name in reasons)


@pytest.mark.parametrize(
    "words",
    ["N/A", "Unknown Error", "[Not Supported]", "ERR!", "Requested functionality has been deprecated", "GPU is lost"],
)
@cases(
    ("    Addressing Mode                       : None", "addressing_mode"),
    ("        Pending                           : Yes", "remapped_rows_pending"),
    ("        Replays Since Reset               : 12", "pcie_replay_counter"),
    ("    Product Name                          : NVIDIA Test 40GB", "name"),
    ("    Performance State                     : P0", "performance_state"),
    ("        GPU Current Temp                  : 61 C", "temperature_c"),
    ("    Compute Mode                          : Default", "compute_mode"),
)
def test_text_instead_of_value_is_an_error(tmp_path: Path, words: str, entry: str, field: str) -> None:
    broken = query("3B", changes={entry: f"{entry.partition(':')[0]}: {words}"})
    gpu = imported_gpus(tmp_path, broken).devices[0]
    assert getattr(gpu, field) is None
    assert gpu.errors[field] == words


def test_driver_610_reports_module_and_library_versions(tmp_path: Path) -> None:
    versions = (
        "Driver Version : 610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]\n"
        "CUDA Version : 13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]\n"
        "KMD Version : 610.57.04\nCUDA UMD Version : 13.3"
    )
    facts = imported(tmp_path, query("3B", versions=versions)).facts
    gpus = group(facts, Gpus)
    assert (gpus.driver_version, gpus.cuda_driver_version) == ("610.57.04", "13.3")
    assert facts[KernelDriver] == KernelDriver(loaded=True, version="610.57.04", nodes=None)


def test_newer_driver_without_old_names(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, query("3B", versions="KMD Version : 620.10.01\nCUDA UMD Version : 14.0"))
    assert (gpus.driver_version, gpus.cuda_driver_version) == (None, "14.0")
    assert gpus.errors["driver_version"] == "not in nvidia-smi -q"


def test_lost_gpu_among_others(tmp_path: Path) -> None:
    before, _, after = query("3B", "5E", "AF").partition("GPU 00000000:5E")
    lost = "Unable to determine the device handle for GPU 0000:5E:00.0: GPU is lost.  Reboot the system to recover\n"
    gpus = imported_gpus(tmp_path, before + lost + after[after.index("GPU 00000000:AF") :])
    assert (gpus.state, gpus.count, [gpu.index for gpu in gpus.devices]) == ("ready", 3, [0, 1, 2])
    assert (gpus.devices[1].bus_id, gpus.devices[1].errors["handle"]) == ("0000:5e:00.0", "GPU is lost")
    assert gpus.devices[1].name is None
    assert gpus.devices[2].bus_id == "0000:af:00.0"


def test_gpus_with_page_retirement_only(tmp_path: Path) -> None:
    text = (
        "==============NVSMI LOG==============\n\nAttached GPUs : 1\nGPU 00000001:00:00.0\n    Retired Pages\n"
        "        Single Bit ECC : 60\n        Double Bit ECC : 5\n        Pending Page Blacklist : No\n\n"
    )
    gpu = imported_gpus(tmp_path, text).devices[0]
    assert (gpu.bus_id, gpu.retired_pages_single_bit, gpu.retired_pages_double_bit) == ("0001:00:00.0", 60, 5)
    assert gpu.retired_pages_pending is False
    assert gpu.processes is None


HEALTH = """\
        Health
            Summary                       : {summary}
            Bandwidth                     : {bandwidth}
            Route Recovery in progress    : False
            Route Unhealthy               : {route}
            Access Timeout Recovery       : False
            Incorrect Configuration       : {configuration}
"""


@cases(
    (("Healthy", "Full", "False", "None"), ()),
    (("Unhealthy", "Full", "True", "None"), ("route unhealthy: True",)),
    (("Limited Capacity", "Degraded", "False", "None"), ("bandwidth: Degraded",)),
    (("Unhealthy", "N/A", "False", "No Partition"), ("incorrect configuration: No Partition",)),
    (("Unhealthy", "N/A", "N/A", "N/A"), ("summary: Unhealthy",)),
)
def test_health_of_the_fabric(tmp_path: Path, values: tuple[str, ...], problems: tuple[str, ...]) -> None:
    names = ("summary", "bandwidth", "route", "configuration")
    health = HEALTH.format(**dict(zip(names, values, strict=True)))
    status = "        Status                            : N/A\n"
    (gpu,) = imported_gpus(tmp_path, query("3b", changes={status: status + health})).devices
    assert gpu.fabric_problems == problems


def test_health_without_any_value_is_unknown(tmp_path: Path) -> None:
    status = "        Status                            : N/A\n"
    health = HEALTH.format(summary="N/A", bandwidth="N/A", route="N/A", configuration="N/A").replace("False", "N/A")
    (gpu,) = imported_gpus(tmp_path, query("3b", changes={status: status + health})).devices
    assert (gpu.fabric_problems, gpu.errors["fabric_problems"]) == (None, "N/A")


def test_pending_repairs_and_unrepairable_memory(tmp_path: Path) -> None:
    pages = "    Retired Pages\n"
    repairs = (
        "        Channel Repair Pending            : Yes\n"
        "        TPC Repair Pending                : No\n"
        "        Unrepairable Memory               : Yes\n"
    )
    (gpu,) = imported_gpus(tmp_path, query("3b", changes={pages: repairs + pages})).devices
    assert (gpu.channel_repair_pending, gpu.tpc_repair_pending, gpu.unrepairable_memory) == (True, False, True)
    (older,) = imported_gpus(tmp_path, query("3b")).devices
    assert (older.unrepairable_memory, older.errors["unrepairable_memory"]) == (None, "not reported by this driver")


def test_power_limits_below_their_heading_of_driver_610(tmp_path: Path) -> None:
    limits = (
        "        Current Power Limit               : 250.00 W\n        Default Power Limit               : 300.00 W\n"
    )
    below = "        GPU Ceiling Power Limit\n" + "".join(f"    {line}\n" for line in limits.splitlines())
    (gpu,) = imported_gpus(tmp_path, query("3b", changes={limits: below})).devices
    assert (gpu.enforced_power_limit_w, gpu.default_power_limit_w) == (250.0, 300.0)


def test_processes_with_a_graphics_context_are_listed_separately(tmp_path: Path) -> None:
    (gpu,) = imported_gpus(tmp_path, query("3b")).devices
    assert [process.pid for process in gpu.processes or ()] == [4711, 4712]
    assert [process.name for process in gpu.graphics_processes or ()] == ["/usr/lib/xorg/Xorg"]


def test_unknown_entries_and_lines_are_kept(tmp_path: Path) -> None:
    changes = {
        "    Compute Mode  ": "    Frobnication                          : Failed\n    Compute Mode  ",
        "    Retired Pages\n": "        HBM Repair Failed                 : Yes\n    Retired Pages\n",
    }
    gpus = imported_gpus(tmp_path, query("3b", "5e", changes=changes) + "\nWARNING: something is wrong\n")
    assert [line.partition(": ")[2] for line in gpus.not_understood] == [
        "WARNING: something is wrong",
        "frobnication: Failed (2 times)",
        "ecc errors/hbm repair failed: Yes (2 times)",
    ]
    assert imported_gpus(tmp_path, query("3b")).not_understood == ()
    # What people write below it is not about a GPU, and the last line may be cut off.
    facts = imported(tmp_path, query("3b") + "Any ideas?\nThanks\n        Memory Max Operatin\n").facts
    assert group(facts, Gpus).not_understood == ()
    assert [line.text for line in group(facts, ImportedLines).lines] == ["Any ideas?", "Thanks"]
