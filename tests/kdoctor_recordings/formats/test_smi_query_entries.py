"""GPUs and processes of ``nvidia-smi -q``: how they are separated, and where the output ends."""

from pathlib import Path

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import imported_gpus, query
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
