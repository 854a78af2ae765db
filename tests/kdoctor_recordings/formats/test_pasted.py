"""What people do to output when they paste it: nothing of it changes what is read."""

import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from textwrap import indent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cases import cases
from helpers.kdoctor_recordings import dumps
from helpers.kdoctor_recordings.dumps import LSPCI, NVLINK, TABLE, TOPOLOGY, UUID, group, imported, imported_gpus, query
from kdoctor.facts import Gpus, KernelLog
from kdoctor.facts.gpus import EVENT_HW_POWER_BRAKE, EVENT_HW_SLOWDOWN
from kdoctor_recordings.formats import smi_query
from kdoctor_recordings.formats.part import Part
from kdoctor_recordings.formats.split import find_sections

OTHERS = {"topology": TOPOLOGY, "nvlink": NVLINK, "lspci": LSPCI}
CSV = "index, name, pci.bus_id, uuid, ecc.errors.uncorrected.volatile.total, temperature.gpu\n" + "".join(
    f"{index}, NVIDIA A100-SXM4-80GB, 00000000:{index}B:00.0, {UUID.format(index)}, {index}, 34\n" for index in (0, 1)
)
DUMPS = {"query": query("3B", "AF"), "xml": dumps.xml("3B"), "table": TABLE, "csv": CSV, **OTHERS}
PASTES: dict[str, Callable[[str], str]] = {
    "in a block below a sentence": lambda text: f"This is what I get:\n\n{indent(text, '    ')}",
    "in a list of Markdown": lambda text: (
        f"1. Check:\n   ```sh\n   nvidia-smi\n   ```\n   ```plaintext\n{indent(text, '   ')}   ```\n2. Go on\n"
    ),
    "quoted": lambda text: indent(text, "> ", lambda _: True),
    "quoted twice": lambda text: indent(text, "> > ", lambda _: True),
    "in a comment": lambda text: indent(text, "# ", lambda _: True),
    "in a comment of code": lambda text: indent(text, "        // ", lambda _: True),
    "in a log of CI": lambda text: indent(text, "[task 2026-07-01T05:06:30.004+00:00] [train] ", lambda _: True),
    "in a log of GitHub": lambda text: indent(text, "2026-07-01T05:06:30.0041234Z ", lambda _: True),
    "in a log of a container": lambda text: indent(text, "trainer-1  | ", lambda _: True),
    "below the name of a host": lambda text: indent(text, "node-7: ", lambda _: True),
    "in a diff": lambda text: indent(text, "+", lambda _: True),
    "behind a tab": lambda text: indent(text, "\t", lambda _: True),
    "with numbers": lambda text: "".join(f"{number:4}  {line}\n" for number, line in enumerate(text.splitlines(), 1)),
    "in a list of JSON": lambda text: f"{json.dumps({'stdout_lines': text.splitlines()}, indent=4)}\n",
    "in a string of JSON": lambda text: json.dumps({"rc": 0, "stdout": text}),
    "as bytes of Python": lambda text: repr(text.encode()),
    "with breaks of HTML": lambda text: f"<p>{escape(text, quote=False)}</p>".replace("\n", "<br>\n"),
    "without leading spaces": lambda text: re.sub(r"(?m)^[ \t]+", "", text),
    "with each space once": lambda text: re.sub(r"[ \t]+", " ", text),
    "with each space once and none that leads": lambda text: re.sub(r"(?m)^ ", "", re.sub(r"[ \t]+", " ", text)),
    "as HTML": lambda text: text.replace("<", "&lt;").replace(">", "&gt;"),
    "as mail": lambda text: text.replace(">", "&gt;").replace("  ", "&nbsp; "),
    "with spaces of a web page": lambda text: text.replace("  ", "\u00a0 "),
    "with trailing spaces": lambda text: re.sub(r"(?m)(?<=.)$", "   ", text),
    "in one line": lambda text: " ".join(text.split()) + "\n\n",
    "wrapped by a mail": lambda text: re.sub(r"(?m)^(?=.{73})(.{20,71}\S) +", r"\1\n", text),
    "wrapped by a mail and quoted": lambda text: indent(re.sub(r"(?m)^(.{72})(?=.)", r"\1\n", text), "> "),
}


@pytest.mark.parametrize("paste", PASTES)
@pytest.mark.parametrize("name", DUMPS)
def test_pasted_output_is_read_as_the_output_itself(tmp_path: Path, name: str, paste: str) -> None:
    if (name, paste) == ("csv", "in one line"):
        pytest.skip("a row of CSV in one line has no end")
    plain = imported(tmp_path, DUMPS[name]).facts
    pasted = imported(tmp_path, PASTES[paste](DUMPS[name])).facts
    kept = {kind: value for kind, value in pasted.items() if kind in plain}
    assert kept == plain


FAULT = (
    "[  300.100000] nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x{} flags=0x0020]\n"
)
FAULTS = "".join(FAULT.format(80000040 + number) for number in range(4))
WRAPS: dict[str, Callable[[str], str]] = {
    "by a terminal": lambda text: re.sub(r"(?m)^(.{80})(?=.)", r"\1\n", text),
    "by a mail": lambda text: re.sub(r"(?m)^(.{,72}) (?=.)", r"\1\n", text),
    "not at all": lambda text: text.replace("\n", " ", 3),
    "as a web page": lambda text: f"# dmesg {text.replace('[  300.100000]', '[一 8月 25 16:20:28 2025]')}".replace(
        "\n", " "
    ),
}


@pytest.mark.parametrize("wrap", WRAPS)
def test_wrapped_kernel_log_is_read_as_the_log_itself(tmp_path: Path, wrap: str) -> None:
    events = group(imported(tmp_path, WRAPS[wrap](FAULTS)).facts, KernelLog).events
    assert [(event.kind, event.bus_id) for event in events] == [("iommu-fault", "0000:07:00.0")] * 4


def test_wrapped_row_of_a_table_is_one_row(tmp_path: Path) -> None:
    wrapped = re.sub(r"(?m)^(.{80})(?=.)", r"\1\n", TABLE)
    assert (wrapped == TABLE, imported_gpus(tmp_path, wrapped)) == (False, imported_gpus(tmp_path, TABLE))


def test_note_behind_a_value_is_no_part_of_it(tmp_path: Path) -> None:
    noted = query("3B").replace(": Enabled", ": Enabled   <=== is this it?")
    assert imported_gpus(tmp_path, noted) == imported_gpus(tmp_path, query("3B"))


def parsed(text: str) -> Part:
    (section,) = find_sections("a test", text)
    return smi_query.parse(section)


SEVERAL = {
    "processes",
    "graphics_processes",
    "ecc_corrected_volatile",
    "ecc_uncorrected_volatile",
    "ecc_corrected_aggregate",
    "ecc_uncorrected_aggregate",
}


@settings(max_examples=60)
@given(st.data())
def test_entries_missing_from_unindented_output_change_no_value(data: st.DataObject) -> None:
    """What is read is what the output with its indentation says, or less."""
    lines = query("3B").splitlines(keepends=True)
    entries = [place for place, line in enumerate(lines) if line.startswith("    ") and " : " in line]
    left_out = data.draw(st.sets(st.sampled_from(entries), max_size=12))
    kept = [line for place, line in enumerate(lines) if place not in left_out]
    (whole,), (flat,) = (parsed(text).gpus for text in ("".join(lines), "".join(line.lstrip() for line in kept)))
    # Of fewer counters, the sum is another one, and a process may lack its number.
    assert {field: value for field, value in flat.facts.items() if value != whole.facts.get(field)}.keys() <= SEVERAL


MIG_DEVICE = """\
    MIG Device
        Index                             : 0
        FB Memory Usage
            Total                         : 9984 MiB
            Used                          : 100 MiB
    Accounting Mode                       : Disabled
"""


def test_memory_of_a_mig_device_is_not_the_gpus(tmp_path: Path) -> None:
    divided = query("3B").replace("    GPU UUID", f"{MIG_DEVICE}    GPU UUID")
    flat = re.sub(r"(?m)^ +", "", divided)
    assert imported_gpus(tmp_path, flat) == imported_gpus(tmp_path, query("3B"))


PART = """\
    Fabric
        State                             : In Progress
        Status                            : N/A
"""
MIG = """\
+-----------------------------------------------------------------------------+
| MIG devices:                                                                |
|==================+======================+===========+=======================|
|  1    3   0   0  |  14366MiB / 19968MiB | 28      0 |  2   0    1    0    0 |
|                  |      4MiB / 32767MiB |           |                       |
+------------------+----------------------+-----------+-----------------------+
"""


PENDING = "    Remapped Rows\n        Uncorrectable Error : 4\n        Pending : Yes\n"
COUNTED = "SRAM Correctable : 0\nSRAM Uncorrectable : 0\nDRAM Correctable : 0\nDRAM Uncorrectable : 12\n"


@cases(
    (PART, "fabric_state", "in-progress"),
    *((PENDING.replace("Yes", f"Yes{note}"), "remapped_rows_pending", True) for note in ("  bad", " (!)", " # here")),
    (PENDING.replace(" :", ":"), "remapped_rows_pending", True),
    (PENDING.replace(" :", ":").replace("Rows", "Rows:"), "remapped_rows_pending", True),
    (PENDING.partition("\n")[2], "remapped_rows_pending", True),  # below the missing heading
    (f"Volatile\n{indent(COUNTED, '    ')}", "ecc_uncorrected_volatile", 12),
    (f"Aggregate\n{COUNTED}", "ecc_uncorrected_aggregate", 12),
    ("GPU Recovery Action : Reset\n", "recovery_action", "reset"),
    ("            HW Power Brake Slowdown           : Active\n", "clock_event_reasons", (EVENT_HW_POWER_BRAKE,)),
    ("Clocks Event Reasons\nHW Slowdown: Active\nIdle: Not Active\n", "clock_event_reasons", (EVENT_HW_SLOWDOWN,)),
)
def test_part_of_the_query_is_of_a_gpu_without_a_name(tmp_path: Path, text: str, field: str, value: object) -> None:
    (device,) = imported_gpus(tmp_path, text).devices
    assert (getattr(device, field), device.bus_id, device.numbered) == (value, None, False)


@cases(
    ("GPU 0", "GPU 5"),
    ("=== GPU 0 ===", "=== GPU 5 ==="),
    (f"GPU 0: NVIDIA A100 (UUID: {UUID.format(0)})", f"GPU 5: NVIDIA A100 (UUID: {UUID.format(5)})"),
)
def test_number_above_a_part_is_the_gpus(tmp_path: Path, first: str, second: str) -> None:
    text = f"{first}\n{PENDING.replace('Yes', 'No')}{second}\n{PENDING}"
    found = imported_gpus(tmp_path, text).devices
    assert [(gpu.index, gpu.remapped_rows_pending) for gpu in found] == [(0, False), (5, True)]
    assert {gpu.uuid for gpu in found} == ({UUID.format(0), UUID.format(5)} if "UUID" in first else {None})


def test_same_part_of_several_gpus_is_of_as_many(tmp_path: Path) -> None:
    text = f"{PART.replace('In Progress', 'Completed')}--\n{PART}"
    assert [gpu.fabric_state for gpu in imported_gpus(tmp_path, text).devices] == ["completed", "in-progress"]


def test_trap_of_a_program_is_a_line_of_the_kernel(tmp_path: Path) -> None:
    text = "traps: python[7] general protection fault ip:7f1 sp:7ff error:0 in libcudnn.so.9[7f+5d]\n"
    assert [event.library for event in group(imported(tmp_path, text).facts, KernelLog).events] == ["libcudnn.so.9"]


XML = "<remapped_rows>\n<remapped_row_unc>2</remapped_row_unc>\n<remapped_row_pending>Yes</remapped_row_pending>\n"


@cases(
    (f"{XML}</remapped_rows>\n", None),
    (XML, None),  # cut off
    (f'<gpu id="00000000:1B:00.0">\n{XML}</remapped_rows>\n</gpu>\n', "0000:1b:00.0"),
)
def test_part_of_the_xml_is_read(tmp_path: Path, text: str, bus_id: str | None) -> None:
    (device,) = imported_gpus(tmp_path, text).devices
    assert (device.remapped_rows_pending, device.bus_id, device.numbered) == (True, bus_id, False)


@pytest.mark.parametrize(
    "text", [COUNTED, "Pending : Yes\n", "Name: value\nCurrent: 7\n", "State: Active\nRate: 200\n"]
)
def test_part_that_may_be_of_several_headings_is_not_read(text: str) -> None:
    assert find_sections("a test", text) == ()


ROW = (
    "|   2  NVIDIA L4      Off | 00000000:81:00.0 Off |    3 |\n| N/A   30C    P8    11W /  72W |    1MiB / 23034MiB |"
)


def test_part_of_the_table_begins_with_the_row_of_a_gpu(tmp_path: Path) -> None:
    (device,) = imported_gpus(tmp_path, f"Bad one:\n{ROW}      0%      Default |\n").devices
    assert (device.index, device.bus_id, device.ecc_uncorrected_volatile) == (2, "0000:81:00.0", 3)


def test_hidden_uuid_is_not_known(tmp_path: Path) -> None:
    text = re.sub(r"UUID: [\w-]+", "UUID: ...", NVLINK)
    assert {(gpu.uuid, bool(gpu.nvlinks)) for gpu in imported_gpus(tmp_path, text).devices} == {(None, True)}


def test_processes_alone_are_of_their_gpus(tmp_path: Path) -> None:
    row = "|    {}   N/A  N/A      4711      {}   /usr/bin/program                       160MiB |\n"
    text = f"| Processes:   |\n|====|\n{row.format(0, 'C')}{row.format(2, 'G')}+----+\n"
    found = imported_gpus(tmp_path, text).devices
    assert [(gpu.index, len(gpu.processes or ()), len(gpu.graphics_processes or ())) for gpu in found] == [
        (0, 1, 0),
        (2, 0, 1),
    ]


def test_lines_of_gpustat(tmp_path: Path) -> None:
    (device,) = imported_gpus(tmp_path, "[2] Test GPU | 45'C,  13 % |  2345 / 11264 MB | me(2335M)\n").devices
    assert (device.index, device.temperature_c, device.memory_total_bytes) == (2, 45, 11264 * 1024**2)


def test_lower_half_of_the_table_shows_that_mig_is_on(tmp_path: Path) -> None:
    (device,) = imported_gpus(tmp_path, MIG).devices
    assert (device.index, device.numbered, device.mig_mode) == (1, True, True)


def test_failure_of_nvml_is_found_in_the_output_of_another_program(tmp_path: Path) -> None:
    lines = (
        "[task 2026-07-01T05:06:30.004+00:00] [train] nvidia-smi failed with return code 18",
        "[task 2026-07-01T05:06:30.005+00:00] [train] [out] Failed to initialize NVML: Driver/library version mismatch",
    )
    assert imported_gpus(tmp_path, "".join(f"{line}\n" for line in lines)).state == "library-mismatch"


def test_lost_gpu_of_the_second_host_counts(tmp_path: Path) -> None:
    hosts = "".join(f"node{host}: GPU {place}: NVIDIA A100 (UUID: {UUID[:-3]}{host}{place})\n" for host, place in HOSTS)
    lost = "node2: Unable to determine the device handle for GPU 0000:81:00.0: Unknown Error\n"
    found = imported(tmp_path, hosts + lost)
    assert [gpu.bus_id for gpu in group(found.facts, Gpus).devices if gpu.errors.get("handle")] == ["0000:81:00.0"]
    assert any("Only the second one" in note for note in found.notes)
    healthy = imported(tmp_path, hosts)
    assert [gpu.uuid for gpu in group(healthy.facts, Gpus).devices] == [f"{UUID[:-3]}1{place}" for place in (0, 1)]


HOSTS = [(1, 0), (2, 0), (1, 1), (2, 1)]


def test_level_of_a_kernels_line_is_not_an_element_of_xml(tmp_path: Path) -> None:
    events = group(
        imported(tmp_path, f"<6>[  299.000000] usb 1-1: reset\nPanic#1 Part1\n{FAULTS}").facts, KernelLog
    ).events
    assert [event.kind for event in events] == ["crash", *["iommu-fault"] * 4]
