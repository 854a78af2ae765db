"""``nvidia-smi --query-gpu``: any fields, with or without header and units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.dumps import TABLE, UUID, imported, imported_gpus, query
from kdoctor.facts.gpus import EVENT_HW_SLOWDOWN, EVENT_SW_POWER_CAP
from kdoctor.snapshot.imports.smi_csv import is_header

HEADER = "index, name, pci.bus_id, memory.total [MiB], temperature.gpu, power.draw [W], remapped_rows.failure"
ROWS = (
    "0, NVIDIA Test 40GB, 00000000:3B:00.0, 40960 MiB, 34, 75.11 W, No\n"
    "1, NVIDIA Test 40GB, 00000000:AF:00.0, 40960 MiB, 35, [N/A], Yes\n"
)
COMMAND = "$ nvidia-smi --query-gpu=index,name,pci.bus_id,memory.total,temperature.gpu,power.draw,remapped_rows.failure"


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}\n{ROWS}",
        f"{COMMAND} --format=csv\n{HEADER}\n{ROWS}",
        f"{COMMAND} --format=csv,noheader\n{ROWS}",
        f"{COMMAND} --format=csv,noheader,nounits\n{ROWS.replace(' MiB', '').replace(' W', '').replace('Yes', '1')}",
    ],
    ids=["header", "command and header", "command", "command without units"],
)
def test_table_in_each_form(tmp_path: Path, text: str) -> None:
    found = imported_gpus(tmp_path, text).devices
    assert [(gpu.index, gpu.bus_id) for gpu in found] == [(0, "0000:3b:00.0"), (1, "0000:af:00.0")]
    assert {gpu.name for gpu in found} == {"NVIDIA Test 40GB"}
    assert {gpu.memory_total_bytes for gpu in found} == {40960 * 1024**2}
    assert [gpu.temperature_c for gpu in found] == [34, 35]
    assert [(gpu.power_draw_w, gpu.errors.get("power_draw_w")) for gpu in found] == [(75.11, None), (None, "N/A")]
    assert found[1].remapped_rows_failure is True


def test_rows_without_header_give_what_they_name(tmp_path: Path) -> None:
    (found,) = imported_gpus(tmp_path, f"0, NVIDIA Test 40GB, {UUID.format(0)}, 34\n").devices
    assert (found.index, found.uuid, found.name, found.temperature_c) == (0, UUID.format(0), "NVIDIA Test 40GB", None)


def test_rows_without_identity_are_the_gpus_in_order(tmp_path: Path) -> None:
    found = imported_gpus(tmp_path, "$ nvidia-smi --query-gpu=temperature.gpu --format=csv\ntemperature.gpu\n34\n35\n")
    assert [(gpu.index, gpu.temperature_c) for gpu in found.devices] == [(0, 34), (1, 35)]


def test_table_adds_to_other_output(tmp_path: Path) -> None:
    text = query("3B", "AF") + f"\n{COMMAND} --format=csv\n{HEADER}\n{ROWS}"
    assert [gpu.bus_id for gpu in imported_gpus(tmp_path, text).devices] == ["0000:3b:00.0", "0000:af:00.0"]


def test_tables_of_processes_are_not_gpus(tmp_path: Path) -> None:
    processes = "gpu_name, gpu_bus_id, pid, process_name\nNVIDIA Test 40GB, 00000000:3B:00.0, 7, python\n"
    alone = imported_gpus(tmp_path, TABLE).devices
    assert len(imported_gpus(tmp_path, f"{TABLE}\n{processes}").devices) == len(alone)


REASONS = ("sw_power_cap", "hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
ECC = "ecc.errors.uncorrected.volatile"


@pytest.mark.parametrize(
    ("columns", "field", "value"),
    [
        ({"compute_cap": "10.0"}, "compute_capability", "10.0"),
        ({"inforom.checksum_validation": "valid"}, "inforom_valid", True),
        ({"ecc.errors.uncorrected.aggregate.sram.thresholdExceeded": "Yes"}, "sram_threshold_exceeded", True),
        ({f"clocks_event_reasons.{name}": "Not Active" for name in REASONS}, "clock_event_reasons", (0,)),
        ({"clocks_throttle_reasons.hw_slowdown": "Active"}, "clock_event_reasons", (EVENT_HW_SLOWDOWN,)),
        ({"clocks_throttle_reasons.hw_slowdown": "Not Active"}, "clock_event_reasons", None),
        ({"clocks_throttle_reasons.active": "0x4"}, "clock_event_reasons", (EVENT_SW_POWER_CAP,)),
        ({"fabric.health.bandwidth": "Degraded"}, "fabric_problems", ("bandwidth: Degraded",)),
        ({"fabric.health.bandwidth": "Full", "fabric.health.route_unhealthy": "False"}, "fabric_problems", ()),
        ({"fabric.health.summary": "[N/A]"}, "fabric_problems", None),
        ({f"{ECC}.total": "3", f"{ECC}.dram": "2"}, "ecc_uncorrected_volatile", 3),
        ({f"{ECC}.dram": "2"}, "ecc_uncorrected_volatile", 2),
        ({f"{ECC}.dram": "0"}, "ecc_uncorrected_volatile", None),
        ({f"{ECC}.dram": "0", f"{ECC}.sram": "0"}, "ecc_uncorrected_volatile", 0),
        (
            {f"{ECC}.device_memory": "1", f"{ECC}.sram.parity": "1", f"{ECC}.sram.secded": "2"},
            "ecc_uncorrected_volatile",
            4,
        ),
    ],
)
def test_column_is_read(tmp_path: Path, columns: dict[str, str], field: str, value: Any) -> None:
    text = f"index, {', '.join(columns)}\n0, {', '.join(columns.values())}\n"
    (found,) = imported_gpus(tmp_path, text).devices
    assert getattr(found, field) == value


def test_invalid_inforom_is_an_error(tmp_path: Path) -> None:
    (found,) = imported_gpus(tmp_path, "index, inforom.checksum_validation\n0, invalid\n").devices
    assert (found.inforom_valid, found.errors["inforom_valid"]) == (None, "infoROM is corrupted")


def test_gpu_of_which_nothing_can_be_read_does_not_respond(tmp_path: Path) -> None:
    rows = "0, NVIDIA Test 40GB, 34, 0 %\n1, [Unknown Error], [Unknown Error], [Unknown Error]\n"
    first, second = imported_gpus(tmp_path, f"index, name, temperature.gpu, utilization.gpu [%]\n{rows}").devices
    assert "handle" not in first.errors
    assert second.errors["handle"] == "Unknown Error"


def test_unread_fields_are_named(tmp_path: Path) -> None:
    columns = "index, name, frobnication, clocks_event_reasons.gpu_idle, fabric.health.summary"
    (note,) = imported(tmp_path, f"{columns}\n0, NVIDIA Test 40GB, 7, Active, Healthy\n").notes
    assert note.endswith(": frobnication")


def test_selected_gpus_without_identity_may_be_any(tmp_path: Path) -> None:
    for option, notes in ((" -i 3", 1), ("", 0)):
        table = f"$ nvidia-smi{option} --query-gpu=temperature.gpu --format=csv\ntemperature.gpu\n34\n"
        assert len(imported(tmp_path, table).notes) == notes


@pytest.mark.parametrize(("number", "index"), [("127", 127), ("128", None)])
def test_number_without_header_is_an_index_if_a_machine_may_have_it(
    number: str, index: int | None, tmp_path: Path
) -> None:
    found = imported_gpus(tmp_path, f"{number}, NVIDIA Test 40GB, 00000000:3B:00.0\n").devices
    assert [gpu.index for gpu in found if gpu.bus_id] == [index if index is not None else 0]


def test_gpu_with_one_unreadable_field_responds(tmp_path: Path) -> None:
    (found,) = imported_gpus(tmp_path, "index, temperature.gpu\n0, [Unknown Error]\n").devices
    assert "handle" not in found.errors


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("name, pstate", True),
        ("name, vbios_version", True),
        ("name, uuid", True),
        ("fan_speed, name", True),
        ("foo, bar", False),
        ("name, see the manual: chapter 3", False),
        ("index, which GPU?, why", False),
    ],
)
def test_header_has_only_names_and_a_known_one(line: str, *, expected: bool) -> None:
    assert bool(is_header(line)) is expected


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("remapped_rows.failure", "Yes", True),
        ("remapped_rows.failure", "0", False),
        ("remapped_rows.failure", "perhaps", None),
        ("inforom.checksum_validation", "valid", True),
        ("inforom.checksum_validation", "invalid", None),
        ("inforom.checksum_validation", "perhaps", None),
    ],
)
def test_word_that_is_not_an_answer_is_unknown(tmp_path: Path, field: str, text: str, *, expected: bool | None) -> None:
    attribute = "remapped_rows_failure" if field.startswith("remapped") else "inforom_valid"
    gpu = imported_gpus(tmp_path, f"index, {field}\n0, {text}\n").devices[0]
    assert getattr(gpu, attribute) is expected
    assert (attribute in gpu.errors) is (expected is None)
