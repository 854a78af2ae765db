import time
from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import UUID, imported, imported_gpus, xml
from kdoctor.errors import UsageError
from kdoctor.facts import GpuProcess
from kdoctor.facts.gpus import EVENT_GPU_IDLE, EVENT_HW_THERMAL_SLOWDOWN
from kdoctor_recordings.formats.part import CUT

MIB = 1024**2


def test_elements_become_facts(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, xml("3B", "AF"))
    assert (gpus.driver_version, gpus.cuda_driver_version, gpus.count) == ("460.73.01", "11.2", 2)
    expected: dict[str, Any] = {
        "index": 0,
        "name": "NVIDIA Test 40GB",
        "uuid": UUID.format(0),
        "bus_id": "0000:3b:00.0",
        "persistence_mode": False,
        "mig_mode": True,
        "mig_mode_pending": False,
        "virtualization_mode": "passthrough",
        "pcie_generation": 1,
        "pcie_generation_max": 4,
        "pcie_generation_gpu_max": 4,
        "pcie_width": 8,
        "pcie_width_max": 16,
        "pcie_replay_counter": 7,
        "fan_speed_percent": 31,
        "performance_state": 8,
        "clock_event_reasons": (EVENT_GPU_IDLE | EVENT_HW_THERMAL_SLOWDOWN,),
        "memory_used_bytes": 3 * MIB,
        "compute_mode": "prohibited",
        "ecc_corrected_volatile": 3,
        "retired_pages_single_bit": 5,
        "retired_pages_double_bit": 6,
        "retired_pages_pending": True,
        "temperature_slowdown_c": 89,
        "temperature_shutdown_c": 92,
        "enforced_power_limit_w": 150.0,
        "default_power_limit_w": 300.0,
        "clock_sm_mhz": 210,
        "clock_sm_max_mhz": 1410,
        "processes": (GpuProcess(pid=99, used_memory_bytes=3 * MIB, name="python"),),
    }
    gpu = gpus.devices[0]
    assert {name: getattr(gpu, name) for name in expected} == expected
    assert gpu.errors["ecc_uncorrected_volatile"] == "N/A"
    assert gpu.errors["remapped_rows_failure"] == "N/A"


def test_truncated_file(tmp_path: Path) -> None:
    text = xml("3B", "AF")
    found = imported(tmp_path, text[: text.rindex("<compute_mode>")])
    gpus = imported_gpus(tmp_path, text[: text.rindex("<compute_mode>")])
    assert (gpus.count, [gpu.bus_id for gpu in gpus.devices]) == (2, ["0000:3b:00.0", "0000:af:00.0"])
    assert gpus.devices[0].compute_mode == "prohibited"
    assert gpus.devices[1].compute_mode is None
    assert gpus.devices[1].errors["compute_mode"] == CUT
    assert any("from line " in note for note in found.notes)


def test_empty_list_of_processes(tmp_path: Path) -> None:
    text = xml("3B")
    start, end = text.index("<processes>"), text.index("</processes>") + len("</processes>")
    assert imported_gpus(tmp_path, text[:start] + "<processes />" + text[end:]).devices[0].processes == ()


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))


@cases('<!ENTITY x SYSTEM "file:///etc/passwd">', f'<!ENTITY e0 "ha">{BOMB}', '<!ENTITY % p SYSTEM "x">')
def test_entities_are_refused(tmp_path: Path, declared: str) -> None:
    text = xml("3B").replace('"nvsmi_device_v11.dtd">', f'"nvsmi_device_v11.dtd" [{declared}]>')
    text = text.replace("NVIDIA Test 40GB", "&e11;")
    started = time.monotonic()
    with pytest.raises(UsageError, match="declares entities"):
        imported(tmp_path, text)
    assert time.monotonic() - started < 1


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nested too deeply"):
        imported(tmp_path, "<nvidia_smi_log>" + "<gpu>" * 100_000)


def test_address_is_that_of_the_gpu_or_of_its_pci_device(tmp_path: Path) -> None:
    text = xml("3B").replace(' id="00000000:3B:00.0"', "")
    assert imported_gpus(tmp_path, text).devices[0].bus_id is None
    text = text.replace("<pci>", "<pci><pci_bus_id>00000000:5E:00.0</pci_bus_id>")
    assert imported_gpus(tmp_path, text).devices[0].bus_id == "0000:5e:00.0"
    text = xml("3B").replace("<pci>", "<pci><pci_bus_id>00000000:5E:00.0</pci_bus_id>")
    assert imported_gpus(tmp_path, text).devices[0].bus_id == "0000:3b:00.0"


def test_each_process_has_its_own_values(tmp_path: Path) -> None:
    second = (
        "<process_info><pid>100</pid><type>G</type><process_name>Xorg</process_name>"
        "<used_memory>N/A</used_memory><frobnication>Failed</frobnication></process_info>"
    )
    gpus = imported_gpus(tmp_path, xml("3B", "AF").replace("        </processes>", f"{second}</processes>", 1))
    first, other = gpus.devices
    assert [(one.pid, one.name) for one in first.processes or ()] == [(99, "python")]
    assert [(one.pid, one.used_memory_bytes) for one in first.graphics_processes or ()] == [(100, None)]
    assert other.graphics_processes == ()
    assert [line.partition(": ")[2] for line in gpus.not_understood] == ["processes/frobnication: Failed"]


@pytest.mark.parametrize("other", ["<note>None</note>", "<process><pid>7</pid></process>", "\n<note />\n"])
def test_processes_in_another_form_are_not_known(tmp_path: Path, other: str) -> None:
    text = xml("3B")
    start, end = text.index("<processes>"), text.index("</processes>")
    gpu = imported_gpus(tmp_path, f"{text[:start]}<processes>{other}{text[end:]}").devices[0]
    assert (gpu.processes, gpu.errors["processes"]) == (None, "of another form")


def test_text_in_place_of_the_processes_is_the_reason(tmp_path: Path) -> None:
    text = xml("3B")
    start, end = text.index("<processes>"), text.index("</processes>")
    gpu = imported_gpus(tmp_path, text[:start] + "<processes>N/A" + text[end:]).devices[0]
    assert (gpu.processes, gpu.errors["processes"]) == (None, "N/A")
    gpu = imported_gpus(tmp_path, text[:start] + text[end + len("</processes>") :]).devices[0]
    assert (gpu.processes, gpu.errors["processes"]) == (None, "not in nvidia-smi -q -x")
