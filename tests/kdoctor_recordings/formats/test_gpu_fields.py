"""Entries of ``nvidia-smi -q`` that become facts: missing, without a value, or below another heading."""

from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import imported_gpus
from kdoctor.facts import Gpu
from kdoctor.facts.gpus import EVENT_GPU_IDLE, EVENT_HW_POWER_BRAKE, EVENT_HW_SLOWDOWN, EVENT_SW_POWER_CAP

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


@cases(
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
    (reasons("HW Power Brake Slowdown", "Idle"), (EVENT_GPU_IDLE | EVENT_HW_POWER_BRAKE,)),
    (["Clocks Throttle Reasons", *reasons("Idle")[1:]], (EVENT_GPU_IDLE,)),
    ([line for line in reasons("Idle") if "HW T" not in line and "HW P" not in line], (EVENT_GPU_IDLE,)),  # driver 375
    (["Clocks Event Reasons : N/A"], "N/A"),
    ([], "not in nvidia-smi -q"),
    (["Clocks Event Reasons", "    Idle : N/A"], "N/A"),
    (["Clocks Event Reasons", "    Frobnication : Active"], "not in nvidia-smi -q"),
)
def test_reasons_for_low_clocks(tmp_path: Path, lines: list[str], mask: tuple[int] | str) -> None:
    found = gpu(tmp_path, *lines)
    assert (found.clock_event_reasons or found.errors["clock_event_reasons"]) == mask


VOLATILE = ("ECC Errors", "    Volatile")


@cases(
    # Before Ampere there is a total.
    ((*VOLATILE, "        Single Bit", "            Total : 3", "        Double Bit", "            Total : 0"), 3, 0),
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


@cases(
    (("GPU Recovery Action : None",), "none"),
    (("GPU Recovery Action : Reset",), "reset"),
    (("GPU Recovery Action : Drain and Reset",), "drain-and-reset"),
    (("GPU Recovery Action : Node Reboot",), "reboot"),
    (("GPU Recovery Action : N/A", "GPU Reset Status", "    Reset Required : Yes"), None),
    (("GPU Reset Status", "    Reset Required : Yes", "    Drain and Reset Recommended : Yes"), "drain-and-reset"),
    (("GPU Reset Status", "    Reset Required : No", "    Drain and Reset Recommended : Yes"), "drain-and-reset"),
    (("GPU Reset Status", "    Reset Required : No", "    Drain and Reset Recommended : No"), None),
    (("GPU Reset Status", "    Reset Required : N/A"), None),
    (("GPU Reset Status", "    Reset Required : yes"), "reset"),
    ((), None),
)
def test_action_that_recovers_the_gpu(tmp_path: Path, lines: tuple[str, ...], action: str | None) -> None:
    found = gpu(tmp_path, *lines)
    assert found.recovery_action == action
    assert (found.errors.get("recovery_action") is None) is (action is not None)


@pytest.mark.parametrize(
    "lines",
    [("PCI", "    GPU Link Info : N/A"), ("PCI : N/A",), ("PCI", "    GPU Link Info", "        PCIe Generation : N/A")],
)
def test_text_of_any_heading_above_an_entry_is_its_error(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert gpu(tmp_path, *lines).errors["pcie_generation"] == "N/A"


def test_text_of_the_closest_heading_is_the_error(tmp_path: Path) -> None:
    found = gpu(tmp_path, "PCI : N/A", "PCI", "    GPU Link Info : Unknown Error")
    assert found.errors["pcie_generation"] == "Unknown Error"


def test_long_text_in_place_of_a_value_is_shortened(tmp_path: Path) -> None:
    found = gpu(tmp_path, f"Performance State : {'x' * 100}", "Compute Mode :")
    assert found.errors["performance_state"] == "x" * 80
    assert found.errors["compute_mode"] == "empty"
