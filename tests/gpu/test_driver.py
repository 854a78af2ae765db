"""NVML's facts against what nvidia-smi prints on the same machine, field by field."""

import dataclasses
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers import real_gpu
from helpers.real_gpu import Record, imported, tool
from kdoctor.facts import Facts, Gpu, Gpus, KernelDriver
from kdoctor.probes.nvml import probe as nvml

pytestmark = pytest.mark.gpu

MIB = 1024**2
MOVING: dict[str, float] = {
    "memory_used_bytes": 64 * MIB,
    "temperature_c": 6,
    "temperature_margin_c": 6,
    "power_draw_w": 60,
    "clock_sm_mhz": 2500,
    "clock_memory_mhz": 20000,
    "utilization_gpu_percent": 100,
    "utilization_memory_percent": 100,
    "performance_state": 15,
    "pcie_generation": 6,
    "pcie_width": 0,
    "pcie_replay_counter": 20,
    "fan_speed_percent": 30,
    "ecc_corrected_volatile": 2,
    "ecc_corrected_aggregate": 2,
}
"""Fields that change between two readings, and by how much at most beyond the readings before and after."""
ROUNDED: dict[str, float] = {
    "memory_total_bytes": MIB,
    "bar1_total_bytes": MIB,
    "enforced_power_limit_w": 0.01,
    "default_power_limit_w": 0.01,
}
"""nvidia-smi prints these in MiB and in hundredths of a watt."""
NAMELESS = ("uuid", "bus_id")
"""Their values identify the machine and are not recorded."""
NOT_COMPARED = ("index", "errors", "processes", "clock_event_reasons", "nvlinks", "subject")
FIELDS = [field.name for field in dataclasses.fields(Gpu) if field.name not in NOT_COMPARED]


@dataclasses.dataclass(frozen=True)
class Readings:
    before: Gpus
    smi: Gpus
    text: Gpus
    after: Gpus


def nvml_facts() -> Gpus:
    found = nvml.collect(real_gpu.context())[Gpus]
    assert isinstance(found, Gpus), found
    return found


@pytest.fixture(scope="module")
def readings(facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> Readings:
    folder = tmp_path_factory.mktemp("smi")
    nvml_facts()  # wakes the GPUs
    before = nvml_facts()
    smi = imported(folder, Gpus, tool("nvidia-smi", "-q", "-x"))
    text = imported(folder, Gpus, tool("nvidia-smi", "-q"))
    return Readings(before, smi, text, nvml_facts())


@pytest.mark.parametrize("field", FIELDS)
def test_nvml_field_is_what_nvidia_smi_prints(field: str, readings: Readings, record: Record) -> None:
    missing = []
    for ours, theirs, later in zip(readings.before.devices, readings.smi.devices, readings.after.devices, strict=True):
        one, other = getattr(ours, field), getattr(theirs, field)
        shown = "(identifies the GPU)" if field in NAMELESS else None
        note(record, ours, field, shown or one, shown or other)
        if one is None and other is None:
            missing.append(f"neither reports it ({ours.errors.get(field)}; {theirs.errors.get(field)})")
        elif other is None:
            missing.append(f"nvidia-smi does not print it ({theirs.errors.get(field, 'no such field')})")
        elif one is None:
            pytest.fail(f"nvidia-smi prints {other}; NVML: {ours.errors.get(field, 'nothing')}")
        else:
            expect_equal(field, one, other, getattr(later, field))
    if len(missing) == len(readings.before.devices):
        pytest.skip(missing[0])


def note(record: Record, gpu: Gpu, field: str, one: Any, other: Any) -> None:
    error = gpu.errors.get(field, "not reported")
    record.row("NVML and nvidia-smi", GPU=gpu.index, field=field, NVML=error if one is None else one, smi=other)


def expect_equal(field: str, one: Any, other: Any, later: Any) -> None:
    if field in MOVING and later is not None:
        low, high = sorted((one, later))
        assert low - MOVING[field] <= other <= high + MOVING[field]
    else:
        assert other == (pytest.approx(one, abs=ROUNDED[field]) if field in ROUNDED else one)


@pytest.mark.parametrize("field", ["driver_version", "cuda_driver_version", "count"])
def test_driver_field_is_what_nvidia_smi_prints(field: str, readings: Readings, record: Record) -> None:
    one, other = getattr(readings.before, field), getattr(readings.smi, field)
    record.row("NVML and nvidia-smi", GPU="all", field=field, NVML=one, smi=other)
    if other is None:
        pytest.skip(f"nvidia-smi does not print it ({readings.smi.errors.get(field)})")
    assert one == other


def test_text_and_xml_of_nvidia_smi_are_read_alike(readings: Readings) -> None:
    still = [field for field in FIELDS if field not in MOVING]
    for one, other in zip(readings.smi.devices, readings.text.devices, strict=True):
        assert {field: getattr(one, field) for field in still} == {field: getattr(other, field) for field in still}


CSV: dict[str, tuple[str, Callable[[str], Any]]] = {
    "index": ("index", int),
    "name": ("name", str),
    "uuid": ("uuid", str),
    "pci.bus_id": ("bus_id", lambda text: text.lower()[-12:]),
    "driver_version": ("", str),
    "compute_cap": ("compute_capability", str),
    "memory.total": ("memory_total_bytes", lambda text: int(text) * MIB),
    "persistence_mode": ("persistence_mode", lambda text: text == "Enabled"),
    "ecc.mode.current": ("ecc_mode", lambda text: text == "Enabled"),
    "mig.mode.current": ("mig_mode", lambda text: text == "Enabled"),
    "compute_mode": ("compute_mode", lambda text: text.lower().replace("_", "-")),
    "clocks.max.sm": ("clock_sm_max_mhz", int),
    "clocks.max.memory": ("clock_memory_max_mhz", int),
    "enforced.power.limit": ("enforced_power_limit_w", float),
    "power.default_limit": ("default_power_limit_w", float),
    "pcie.link.gen.max": ("pcie_generation_max", int),
    "pcie.link.width.max": ("pcie_width_max", int),
}
"""A field of ``nvidia-smi --query-gpu`` to kdoctor's, read here without kdoctor's importer."""


@pytest.mark.parametrize("name", CSV)
def test_nvml_field_is_what_a_query_prints(name: str, gpus: Gpus) -> None:
    field, read = CSV[name]
    lines = tool("nvidia-smi", f"--query-gpu={name}", "--format=csv,noheader,nounits").splitlines()
    assert len(lines) == len(gpus.devices)
    for gpu, line in zip(gpus.devices, lines, strict=True):
        ours = getattr(gpu, field) if field else gpus.driver_version
        text = line.strip()
        if re.fullmatch(r"\[?(N/A|Not Supported|Requested functionality.*)\]?", text):
            assert ours is None, f"nvidia-smi prints {text}"
            pytest.skip(f"nvidia-smi prints {text}, and NVML reports nothing")
        assert ours == (pytest.approx(read(text), abs=ROUNDED[field]) if field in ROUNDED else read(text))


def test_nvlinks_are_those_of_nvidia_smi(gpus: Gpus, tmp_path: Path, record: Record) -> None:
    theirs = imported(tmp_path, Gpus, tool("nvidia-smi", "nvlink", "-s"))
    for ours, other in zip(gpus.devices, theirs.devices, strict=True):
        counts = [
            None if one.nvlinks is None else sum(bool(link.active) for link in one.nvlinks) for one in (ours, other)
        ]
        record.row("NVLink", GPU=ours.index, NVML=counts[0], smi=counts[1])
        if other.nvlinks:
            assert counts[0] == counts[1]


def test_kernel_module_has_the_drivers_version(gpus: Gpus, facts: Facts) -> None:
    driver = real_gpu.group(facts, KernelDriver)
    if driver.version is None:
        pytest.skip("the kernel does not show the version of the module")
    assert driver.loaded
    assert driver.version == gpus.driver_version


def test_device_nodes_can_be_opened(gpus: Gpus) -> None:
    assert gpus.node_errors == {}


def test_driver_answers_in_time(gpus: Gpus, record: Record) -> None:
    """Time of all calls for all GPUs, process included, three times."""
    for run in range(3):
        began = time.monotonic()
        nvml_facts()
        seconds = time.monotonic() - began
        record.row("Time of the NVML probe", run=run, GPUs=len(gpus.devices), seconds=seconds)
        assert seconds < nvml.DEADLINE_S
