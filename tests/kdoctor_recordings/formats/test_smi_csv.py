"""``nvidia-smi --query-gpu``: any fields, with or without header and units."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import TABLE, UUID, imported, imported_gpus
from kdoctor.facts import Gpus
from kdoctor.facts.gpus import EVENT_HW_SLOWDOWN, EVENT_SW_POWER_CAP
from kdoctor_recordings.facts import ImportedLines
from kdoctor_recordings.formats.smi_csv import is_header, is_query, is_row

HEADER = "index, name, pci.bus_id, memory.total [MiB], temperature.gpu, power.draw [W], remapped_rows.failure"
ROWS = (
    "0, NVIDIA Test 40GB, 00000000:3B:00.0, 40960 MiB, 34, 75.11 W, No\n"
    "1, NVIDIA Test 40GB, 00000000:AF:00.0, 40960 MiB, 35, [N/A], Yes\n"
)
COMMAND = "$ nvidia-smi --query-gpu=index,name,pci.bus_id,memory.total,temperature.gpu,power.draw,remapped_rows.failure"


@cases(
    f"{HEADER}\n{ROWS}",
    f"{COMMAND} --format=csv\n{HEADER}\n{ROWS}",
    f"{COMMAND} --format=csv,noheader\n{ROWS}",
    f"{COMMAND} --format=csv,noheader,nounits\n{ROWS.replace(' MiB', '').replace(' W', '').replace('Yes', '1')}",
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


def test_reasons_in_columns_of_their_own_replace_a_mask_that_was_not_read(tmp_path: Path) -> None:
    header = "index, pci.bus_id, clocks_event_reasons.active, clocks_event_reasons.hw_slowdown"
    (found,) = imported_gpus(tmp_path, f"{header}\n0, 00000000:3B:00.0, [N/A], Active\n").devices
    assert found.clock_event_reasons == (EVENT_HW_SLOWDOWN,)
    assert "clock_event_reasons" not in found.errors


def test_rows_without_header_give_what_they_name(tmp_path: Path) -> None:
    (found,) = imported_gpus(tmp_path, f"0, NVIDIA Test 40GB, {UUID.format(0)}, 34\n").devices
    assert (found.index, found.uuid, found.name, found.temperature_c) == (0, UUID.format(0), "NVIDIA Test 40GB", None)


def test_tables_of_processes_are_not_gpus(tmp_path: Path) -> None:
    processes = "gpu_name, gpu_bus_id, pid, process_name\nNVIDIA Test 40GB, 00000000:3B:00.0, 7, python\n"
    alone = imported_gpus(tmp_path, TABLE).devices
    assert len(imported_gpus(tmp_path, f"{TABLE}\n{processes}").devices) == len(alone)


REASONS = ("sw_power_cap", "hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
ECC = "ecc.errors.uncorrected.volatile"
SUM, MASK = "ecc_uncorrected_volatile", "clock_event_reasons"


@cases(
    ({"compute_cap": "10.0"}, "compute_capability", "10.0"),
    ({"inforom.checksum_validation": "valid"}, "inforom_valid", True),
    ({"ecc.errors.uncorrected.aggregate.sram.thresholdExceeded": "Yes"}, "sram_threshold_exceeded", True),
    ({f"clocks_event_reasons.{name}": "Not Active" for name in REASONS}, MASK, (0,)),
    ({"clocks_throttle_reasons.hw_slowdown": "Active"}, MASK, (EVENT_HW_SLOWDOWN,)),
    ({"clocks_throttle_reasons.hw_slowdown": "Not Active"}, MASK, None),
    ({"clocks_throttle_reasons.active": "0x4"}, MASK, (EVENT_SW_POWER_CAP,)),
    ({"fabric.health.bandwidth": "Degraded"}, "fabric_problems", ("bandwidth: Degraded",)),
    ({"fabric.health.bandwidth": "Full", "fabric.health.route_unhealthy": "False"}, "fabric_problems", ()),
    ({"fabric.health.summary": "[N/A]"}, "fabric_problems", None),
    ({f"{ECC}.total": "3", f"{ECC}.dram": "2"}, SUM, 3),
    ({f"{ECC}.dram": "2"}, SUM, 2),
    ({f"{ECC}.dram": "0"}, SUM, None),
    ({f"{ECC}.dram": "0", f"{ECC}.sram": "0"}, SUM, 0),
    ({f"{ECC}.device_memory": "1", f"{ECC}.sram.parity": "1", f"{ECC}.sram.secded": "2"}, SUM, 4),
    ({"clocks_throttle_reasons.active": "0x0000000000000000"}, MASK, (0,)),
    ({"clocks_throttle_reasons.active": "4"}, MASK, None),
    ({"clocks_throttle_reasons.active": "[N/A]"}, MASK, None),
    (
        {"clocks_event_reasons.active": "[N/A]", **{f"clocks_event_reasons.{name}": "Active" for name in REASONS}},
        MASK,
        (EVENT_SW_POWER_CAP | 0x8 | 0x20 | 0x40 | 0x80,),
    ),
    ({"clocks_event_reasons.active": "0x4", "clocks_event_reasons.hw_slowdown": "Active"}, MASK, (EVENT_SW_POWER_CAP,)),
    ({"ecc.errors.uncorrected.aggregate.sram": "5"}, "ecc_uncorrected_aggregate", 5),
    ({"ecc.errors.corrected.aggregate.total": "5"}, "ecc_corrected_aggregate", 5),
    ({f"{ECC}.total": "[N/A]", f"{ECC}.dram": "2", f"{ECC}.sram": "1"}, SUM, 3),
    ({f"{ECC}.total": "[N/A]", f"{ECC}.dram": "0"}, SUM, None),
    ({f"{ECC}.dram": "[N/A]", f"{ECC}.device_memory": "7"}, SUM, 7),
    ({f"{ECC}.sram": "4", f"{ECC}.sram.parity": "1", f"{ECC}.sram.secded": "2"}, SUM, 4),
    ({f"{ECC}.dram": "0", f"{ECC}.sram.parity": "1"}, SUM, None),
    ({f"{ECC}.sram.parity": "1", f"{ECC}.sram.secded": "0"}, SUM, 1),
    ({"temperature.gpu": "-3"}, "temperature_c", -3),
    ({"temperature.gpu": "34 F"}, "temperature_c", None),
    ({"power.draw [W]": "75.5"}, "power_draw_w", 75.5),
    ({"pcie.link.width.current": "16"}, "pcie_width", 16),
    ({"pcie.link.width.current": "16x"}, "pcie_width", 16),
    ({"remapped_rows.pending": "1"}, "remapped_rows_pending", True),
    ({"remapped_rows.pending": "no"}, "remapped_rows_pending", False),
    ({"remapped_rows.failure": "Yes"}, "remapped_rows_failure", True),
    ({"remapped_rows.failure": "0"}, "remapped_rows_failure", False),
    ({"remapped_rows.failure": "perhaps"}, "remapped_rows_failure", None),
    ({"inforom.checksum_validation": "invalid"}, "inforom_valid", None),
    ({"inforom.checksum_validation": "perhaps"}, "inforom_valid", None),
)
def test_column_is_read(tmp_path: Path, columns: dict[str, str], field: str, value: Any) -> None:
    text = f"index, {', '.join(columns)}\n0, {', '.join(columns.values())}\n"
    (found,) = imported_gpus(tmp_path, text).devices
    assert getattr(found, field) == value
    assert (found.errors.get(field) is None) is (value is not None)


def test_version_of_the_driver_is_that_of_the_first_row(tmp_path: Path) -> None:
    found = imported_gpus(tmp_path, "index, pci.bus_id, driver_version\n0, 00000000:3B:00.0, 580.105.08\n")
    assert found.driver_version == "580.105.08"


def test_gpu_with_one_unreadable_field_responds(tmp_path: Path) -> None:
    (found,) = imported_gpus(tmp_path, "index, temperature.gpu\n0, [Unknown Error]\n").devices
    assert "handle" not in found.errors


def test_rows_that_have_an_index_are_these_gpus(tmp_path: Path) -> None:
    table = "name, index, memory.total [MiB]\nNVIDIA Test 40GB, 3, 40960 MiB\nNVIDIA Test 40GB, 5, 40960 MiB\n"
    assert [gpu.index for gpu in imported_gpus(tmp_path, table).devices] == [3, 5]


def test_invalid_inforom_is_an_error(tmp_path: Path) -> None:
    (found,) = imported_gpus(tmp_path, "index, inforom.checksum_validation\n0, invalid\n").devices
    assert found.errors["inforom_valid"] == "infoROM is corrupted"


def test_gpu_of_which_nothing_can_be_read_does_not_respond(tmp_path: Path) -> None:
    rows = "0, NVIDIA Test 40GB, 34, 0 %\n1, [Unknown Error], [Unknown Error], [Unknown Error]\n"
    rows += "2, NVIDIA Test 40GB, [Unknown Error], 0 %\n"
    gpus = imported_gpus(tmp_path, f"index, name, temperature.gpu, utilization.gpu [%]\n{rows}").devices
    assert [gpu.errors.get("handle") for gpu in gpus] == [None, "Unknown Error", None]


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


@cases(
    ("gpu_uuid", UUID.format(3), "uuid", UUID.format(3)),
    ("uuid", UUID.format(3), "uuid", UUID.format(3)),
    ("gpu_bus_id", "00000000:3b:00.0", "bus_id", "0000:3b:00.0"),
    ("pci.bus_id", "00000000:3B:00.0", "bus_id", "0000:3b:00.0"),
    ("gpu_name", "Tesla T4", "name", "Tesla T4"),
)
def test_identity_in_each_column(tmp_path: Path, column: str, cell: str, field: str, value: str | None) -> None:
    (found,) = imported_gpus(tmp_path, f"{column}, temperature.gpu\n{cell}, 34\n").devices
    assert (getattr(found, field), found.temperature_c) == (value, 34)


@pytest.mark.parametrize("name", ["NVIDIA A2", "Tesla T4", "GeForce GT 710", "Quadro P400"])
def test_rows_without_header_may_have_any_model_and_order(tmp_path: Path, name: str) -> None:
    for row in (f"0, 00000000:3B:00.0, {name}, 34", f"0, {name}, 00000000:3B:00.0", f"0, 34, {name}, 00000000:3B:00.0"):
        (found,) = imported_gpus(tmp_path, f"{row}\n").devices
        assert (found.index, found.bus_id, found.name) == (0, "0000:3b:00.0", name)
    (found,) = imported_gpus(tmp_path, f"{name}, 7, 00000000:3B:00.0\n").devices
    assert (found.bus_id, found.name) == ("0000:3b:00.0", name)


@cases(
    ("1, NVIDIA Test 40GB, 00000000:AF:00.0", False),
    ("index, name, pci.bus_id", False),
    ("1, NVIDIA Test 40GB", True),
    ("1, NVIDIA Test 40GB, 00000000:AF:00.0, more", True),
    ("one, NVIDIA Test 40GB, [N/A]", True),
    ("[Unknown Error], NVIDIA Test 40GB, 00000000:AF:00.0", False),
)
def test_line_that_is_not_a_row_is_not_read(tmp_path: Path, line: str, *, is_unread: bool) -> None:
    text = f"index, name, pci.bus_id\n0, NVIDIA Test 40GB, 00000000:3B:00.0\n\n{line}\n"
    facts = imported(tmp_path, text).facts
    gpus, unread = facts[Gpus], facts.get(ImportedLines)
    assert isinstance(gpus, Gpus)
    assert (len(gpus.devices), unread is not None) == ((1 if is_unread or line.startswith("index") else 2), is_unread)


def test_incomplete_last_row_is_ignored(tmp_path: Path) -> None:
    assert [gpu.temperature_c for gpu in imported_gpus(tmp_path, "index, temperature.gpu\n0, 34\n1, 3").devices] == [34]


@cases(
    (is_header, "name, pstate", True),
    (is_header, "name, vbios_version", True),
    (is_header, "name, uuid", True),
    (is_header, "fan_speed, name", True),
    (is_header, "foo, bar", False),
    (is_header, "name, see the manual: chapter 3", False),
    (is_header, "index, which GPU?, why", False),
    (is_row, UUID.format(3), False),
    (is_row, f"{UUID.format(3)}, 34", True),
    (is_row, "34, 00000000:3B:00.0", True),
    (is_row, "34, 35", False),
    (is_row, "Hello, world", False),
    (is_query, "nvidia-smi --query-gpu=name --format=csv", True),
    (is_query, "nvidia-smi --query-gpu=name", False),
    (is_query, "nvidia-smi --query-compute-apps=pid --format=csv", False),
    (is_query, "", False),
)
def test_line_shows_what_it_is(is_found: Callable[[str], object], line: str, *, expected: bool) -> None:
    assert bool(is_found(line)) is expected


@cases("index", "GPU")
def test_table_of_markdown_is_the_same_table(tmp_path: Path, first: str) -> None:
    rows = [line.split(", ") for line in (HEADER.replace("index", first), *ROWS.splitlines())]
    head, *body = [f"| {' | '.join(cells)} |" for cells in rows]
    text = "\n".join((head, "|---" * len(rows[0]) + "|", *body, "", "as you see"))
    assert imported_gpus(tmp_path, text) == imported_gpus(tmp_path, f"{HEADER}\n{ROWS}")
