"""Entries of ``nvidia-smi -q``: missing, without a value, in another place, and how GPUs are separated."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.dumps import QUERY_GPU, UUID, imported, imported_gpus, query
from kdoctor.facts import Gpu, Gpus
from kdoctor.facts.gpus import EVENT_GPU_IDLE, EVENT_HW_SLOWDOWN, EVENT_SW_POWER_CAP
from kdoctor.snapshot.imports.part import CUT

HEAD = "==============NVSMI LOG==============\n\nDriver Version : 535.161.08\nAttached GPUs : 1\n"


def gpu(folder: Path, *lines: str) -> Gpu:
    """A GPU with these lines and an empty list of processes."""
    text = "".join(f"    {line}\n" for line in (*lines, "Processes : None"))
    (found,) = imported_gpus(folder, f"{HEAD}GPU 00000000:3B:00.0\n{text}\n").devices
    return found


REASONS = ("HW Slowdown", "    HW Thermal Slowdown", "    HW Power Brake Slowdown", "SW Thermal Slowdown")


def reasons(*active: str, without: str = "", unread: str = "") -> list[str]:
    """The entries of the reasons that slow a GPU down, and of others."""
    names = ("Idle", "SW Power Cap", "Sync Boost", *REASONS)
    texts = {name: "Active" if name.strip() in active else "Not Active" for name in names if name.strip() != without}
    return [
        "Clocks Event Reasons",
        *(f"    {name} : {'N/A' if name.strip() == unread else text}" for name, text in texts.items()),
    ]


@pytest.mark.parametrize(
    ("lines", "mask"),
    [
        (reasons(), (0,)),
        (reasons("Idle"), (EVENT_GPU_IDLE,)),
        (reasons("SW Power Cap", without="Idle"), (EVENT_SW_POWER_CAP,)),
        (reasons("SW Power Cap", without="Sync Boost"), (EVENT_SW_POWER_CAP,)),
        (reasons("SW Power Cap", unread="Idle"), (EVENT_SW_POWER_CAP,)),
        (reasons("SW Power Cap", without="SW Thermal Slowdown"), "some reasons are missing"),
        (reasons("Idle", without="SW Power Cap"), "some reasons are missing"),
        (reasons("Idle", unread="SW Power Cap"), "N/A"),
        (reasons(without="HW Slowdown", unread="Idle"), "N/A"),
        (reasons("HW Slowdown", without="SW Power Cap"), (EVENT_HW_SLOWDOWN,)),
        (reasons("HW Slowdown", unread="SW Thermal Slowdown"), (EVENT_HW_SLOWDOWN,)),
        (["Clocks Event Reasons : N/A"], "N/A"),
        ([], "not in nvidia-smi -q"),
        (["Clocks Event Reasons", "    Idle : N/A"], "N/A"),
        (["Clocks Event Reasons", "    Frobnication : Active"], "not in nvidia-smi -q"),
    ],
)
def test_reasons_for_low_clocks(tmp_path: Path, lines: list[str], mask: tuple[int] | str) -> None:
    found = gpu(tmp_path, *lines)
    assert (found.clock_event_reasons or found.errors["clock_event_reasons"]) == mask


VOLATILE = ("ECC Errors", "    Volatile")


@pytest.mark.parametrize(
    ("lines", "corrected", "uncorrected"),
    [
        # Before Ampere there is a total.
        (
            (*VOLATILE, "        Single Bit", "            Total : 3", "        Double Bit", "            Total : 0"),
            3,
            0,
        ),
        ((*VOLATILE, "        SRAM Correctable : 1", "        DRAM Correctable : 2"), 1 + 2, None),
        # One counter for the uncorrected errors of SRAM, later two.
        ((*VOLATILE, "        SRAM Uncorrectable : 5", "        DRAM Uncorrectable : 2"), None, 5 + 2),
        (
            (
                *VOLATILE,
                "        SRAM Uncorrectable Parity : 1",
                "        SRAM Uncorrectable SEC-DED : 2",
                "        DRAM Uncorrectable : 4",
            ),
            None,
            1 + 2 + 4,
        ),
        # A sum without all counters is a lower bound.
        ((*VOLATILE, "        SRAM Uncorrectable : 5"), None, 5),
        ((*VOLATILE, "        SRAM Uncorrectable : 0"), None, "some counters are missing"),
        ((*VOLATILE, "        SRAM Correctable : N/A", "        DRAM Correctable : 0"), "N/A", None),
        ((*VOLATILE, "        SRAM Correctable : N/A", "        DRAM Correctable : 9"), 9, None),
        (("ECC Errors : N/A",), "N/A", "N/A"),
        ((), "not in nvidia-smi -q", "not in nvidia-smi -q"),
    ],
)
def test_counters_of_memory_errors(
    tmp_path: Path, lines: tuple[str, ...], corrected: int | str | None, uncorrected: int | str | None
) -> None:
    found = gpu(tmp_path, *lines)
    for field, expected in (("ecc_corrected_volatile", corrected), ("ecc_uncorrected_volatile", uncorrected)):
        value, error = getattr(found, field), found.errors.get(field)
        if expected is None:  # there are no such counters
            assert value is None, field
        else:
            assert expected == (error if value is None else value), field


@pytest.mark.parametrize(
    ("lines", "action"),
    [
        (("GPU Recovery Action : None",), "none"),
        (("GPU Recovery Action : Reset",), "reset"),
        (("GPU Recovery Action : Drain and Reset",), "drain-and-reset"),
        (("GPU Recovery Action : Node Reboot",), "reboot"),
        (("GPU Recovery Action : N/A", "GPU Reset Status", "    Reset Required : Yes"), None),
        (("GPU Reset Status", "    Reset Required : Yes", "    Drain and Reset Recommended : Yes"), "drain-and-reset"),
        (("GPU Reset Status", "    Reset Required : N/A"), None),
        (("GPU Reset Status", "    Reset Required : yes"), "reset"),
        ((), None),
    ],
)
def test_action_that_recovers_the_gpu(tmp_path: Path, lines: tuple[str, ...], action: str | None) -> None:
    found = gpu(tmp_path, *lines)
    assert found.recovery_action == action
    assert (found.errors.get("recovery_action") is None) is (action is not None)


@pytest.mark.parametrize(
    ("lines", "watts"),
    [
        (("GPU Power Readings", "    Power Draw : N/A", "    Average Power Draw : 50.00 W"), 50.0),
        (("GPU Power Readings", "    Average Power Draw : 50.00 W", "    Instantaneous Power Draw : 60.00 W"), 50.0),
        (("GPU Power Readings", "    Instant Power Draw : 60 W", "Power Readings", "    Power Draw : 70.00 W"), 60.0),
        (("Power Readings", "    Power Draw : 70.00 W"), 70.0),
        (("GPU Power Readings", "    Power Draw : Unknown Error", "    Average Power Draw : N/A"), "Unknown Error"),
        (("GPU Power Readings : N/A",), "N/A"),
    ],
)
def test_first_name_with_a_value_counts(tmp_path: Path, lines: tuple[str, ...], watts: float | str) -> None:
    found = gpu(tmp_path, *lines)
    assert (found.power_draw_w or found.errors["power_draw_w"]) == watts


@pytest.mark.parametrize(
    "lines",
    [
        ("PCI", "    GPU Link Info : N/A"),
        ("PCI : N/A",),
        ("PCI", "    GPU Link Info", "        PCIe Generation : N/A"),
    ],
)
def test_text_of_any_heading_above_an_entry_is_its_error(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert gpu(tmp_path, *lines).errors["pcie_generation"] == "N/A"


def test_text_of_the_closest_heading_is_the_error(tmp_path: Path) -> None:
    found = gpu(tmp_path, "PCI : N/A", "PCI", "    GPU Link Info : Unknown Error")
    assert found.errors["pcie_generation"] == "Unknown Error"


def test_first_of_equal_entries_counts(tmp_path: Path) -> None:
    assert gpu(tmp_path, "Performance State : P2", "Performance State : P8").performance_state == 2


def test_long_text_in_place_of_a_value_is_shortened(tmp_path: Path) -> None:
    found = gpu(tmp_path, f"Performance State : {'x' * 100}", "Compute Mode :")
    assert found.errors["performance_state"] == "x" * 80
    assert found.errors["compute_mode"] == "empty"


def test_tabs_indent_as_four_columns(tmp_path: Path) -> None:
    text = query("3B", "AF")
    tabs = "\n".join("\t" * ((len(line) - len(line.lstrip())) // 4) + line.lstrip() for line in text.split("\n"))
    assert imported_gpus(tmp_path, tabs) == imported_gpus(tmp_path, text)


PROCESS = (
    "        Process ID : {}\n            Type : C\n            Name : python\n            Used GPU Memory : 7 MiB\n"
)


@pytest.mark.parametrize(
    ("ending", "pids", "is_cut"),
    [
        ("", [], True),
        ("    Processes\n", None, True),
        ("    Processes : None\n", [], False),
        (f"    Processes\n{PROCESS.format(1)}", [1], False),
        (f"    Processes\n{PROCESS.format(1)}\n", [1], False),
        (f"    Processes\n{PROCESS.format(1)}        Process ID : 2\n", [1], False),
        (f"    Processes\n{PROCESS.format(1)}        Process ID : 2\n\n", [1, 2], False),
        (
            f"    Processes\n{PROCESS.format(1)}{PROCESS.format(2)}    Capabilities\n        EGM : disabled\n",
            [1, 2],
            False,
        ),
        ("    Processes\n        Process ID : 1\n", None, False),
        ("    Processes\n        Process ID : N/A\n\n", None, False),
        ("    Processes : N/A\n\n", None, False),
    ],
)
def test_list_of_processes_at_the_end_of_a_file(
    tmp_path: Path, ending: str, pids: list[int] | None, *, is_cut: bool
) -> None:
    (found,) = imported_gpus(tmp_path, f"{HEAD}GPU 00000000:3B:00.0\n    Performance State : P0\n{ending}").devices
    assert found.performance_state == 0
    if ending:
        assert (None if found.processes is None else [one.pid for one in found.processes]) == pids
    assert (found.errors["pcie_width"] == CUT) is (not ending)
    assert is_cut is (not ending or ending.endswith("Processes\n"))


def test_dump_that_ends_within_a_line_ignores_it(tmp_path: Path) -> None:
    (found,) = imported_gpus(
        tmp_path, f"{HEAD}GPU 00000000:3B:00.0\n    Performance State : P0\n    Processes : None\n    Minor Number : 1"
    ).devices
    assert (found.performance_state, found.minor_number, found.errors["pcie_width"]) == (0, None, CUT)


def test_only_the_last_gpu_of_a_file_may_be_cut_off(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, query("3B", "AF")[:-1600])
    first, second = gpus.devices
    assert (first.errors["nvlinks"], second.errors["nvlinks"]) == ("not in nvidia-smi -q", CUT)
    assert [one.index for one in gpus.devices] == [0, 1]


@pytest.mark.parametrize(("attached", "cut", "index"), [(1, 0, 0), (2, 0, None), (2, 1600, 0), (1, 1600, 0)])
def test_place_of_a_gpu_is_its_index_unless_gpus_may_be_missing_before_it(
    tmp_path: Path, attached: int, cut: int, index: int | None
) -> None:
    text = query("3B", attached=attached)
    notes = imported(tmp_path, text[: len(text) - cut]).notes
    assert any("without index" in note for note in notes) is (index is None)


def test_gpus_without_a_number_of_them_are_in_order(tmp_path: Path) -> None:
    text = query("3B", "AF").replace("Attached GPUs : 2\n", "")
    found = imported(tmp_path, text)
    gpus = found.facts[Gpus]
    assert isinstance(gpus, Gpus)
    assert (gpus.count, [one.index for one in gpus.devices], found.notes) == (None, [0, 1], ())


@pytest.mark.parametrize(
    ("line", "is_known"),
    [
        ("    Frobnication", False),
        ("    Frobnication\n        Clock : N/A", True),
        ("    Utilization", True),
        ("Frobnication", False),
        ("Mon Jan  5 10:00:00 2026", True),
        ("    Frobnication : N/A", True),
        ("    Frobnication : None", True),
        ("    Frobnication : 0", False),
        ("    Voltage\n        Graphics : 700 mV", True),
        ("    Voltage\n        Graphics : Unknown Error", False),
        ("    Voltage\n        Regulator Fault : 0", True),
        ("    Voltage\n        Regulator Fault : No", True),
        ("    Voltage\n        Regulator Fault : 1", False),
        ("    Retired Pages\n        Page List : failed", False),
        ("    Serial Number : 0", True),
        ("    Serial Number : ERR!", False),
    ],
)
def test_line_that_may_report_a_fault_is_kept(tmp_path: Path, line: str, *, is_known: bool) -> None:
    text = query("3B", changes={"    Compute Mode": f"{line}\n    Compute Mode"})
    assert (imported_gpus(tmp_path, text).not_understood == ()) is is_known


def test_entry_above_the_gpus_that_is_not_known_is_kept(tmp_path: Path) -> None:
    text = query("3B", versions="Driver Version : 535.161.08\nFrobnication : failed")
    assert [line.partition(": ")[2] for line in imported_gpus(tmp_path, text).not_understood] == [
        "frobnication: failed"
    ]


def test_uuid_of_each_gpu_is_its_own(tmp_path: Path) -> None:
    assert "GPU UUID" in QUERY_GPU
    assert [one.uuid for one in imported_gpus(tmp_path, query("3B", "AF")).devices] == [UUID.format(0), UUID.format(1)]
