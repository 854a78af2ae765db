"""GPUs and processes of ``nvidia-smi -q``: how they are separated, and where the output ends."""

from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import QUERY_GPU, UUID, group, imported, imported_gpus, query
from kdoctor.facts import Gpus
from kdoctor_recordings.formats.part import CUT

HEAD = "==============NVSMI LOG==============\n\nDriver Version : 535.161.08\nAttached GPUs : 1\n"


def test_tabs_indent_as_four_columns(tmp_path: Path) -> None:
    text = query("3B", "AF")
    tabs = "\n".join("\t" * ((len(line) - len(line.lstrip())) // 4) + line.lstrip() for line in text.split("\n"))
    assert imported_gpus(tmp_path, tabs) == imported_gpus(tmp_path, text)


PROCESS = (
    "        Process ID : {}\n            Type : C\n            Name : python\n            Used GPU Memory : 7 MiB\n"
)


@cases(
    ("", [], True),
    ("    Processes\n", None, True),
    ("    Processes : None\n", [], False),
    (f"    Processes\n{PROCESS.format(1)}", [1], False),
    (f"    Processes\n{PROCESS.format(1)}\n", [1], False),
    (f"    Processes\n{PROCESS.format(1)}        Process ID : 2\n", [1], False),
    (f"    Processes\n{PROCESS.format(1)}        Process ID : 2\n\n", [1, 2], False),
    (f"    Processes\n{PROCESS.format(1)}{PROCESS.format(2)}    Capabilities\n        EGM : disabled\n", [1, 2], False),
    ("    Processes\n        Process ID : 1\n", None, False),
    ("    Processes\n        Process ID : N/A\n\n", None, False),
    ("    Processes : N/A\n\n", None, False),
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
    gpus = group(found.facts, Gpus)
    assert (gpus.count, [one.index for one in gpus.devices], found.notes) == (None, [0, 1], ())


def test_uuid_of_each_gpu_is_its_own(tmp_path: Path) -> None:
    assert "GPU UUID" in QUERY_GPU
    assert [one.uuid for one in imported_gpus(tmp_path, query("3B", "AF")).devices] == [UUID.format(0), UUID.format(1)]
