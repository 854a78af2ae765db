"""Several dumps of a folder, and what is reported about the files that are not dumps."""

from pathlib import Path

import pytest

from helpers.kdoctor_recordings.dumps import LOG, LSPCI, TOPOLOGY, query
from kdoctor.errors import UsageError
from kdoctor.facts import Gpus, KernelLog, PciDevices
from kdoctor_recordings.importer import import_files

CUT_OFF = TOPOLOGY.partition("GPU2\tSYS")[0]


def folder_of(folder: Path, **files: str) -> Path:
    """A folder with these files."""
    root = folder / "report"
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_files_of_a_folder_are_one_machine(tmp_path: Path) -> None:
    root = folder_of(tmp_path, dmesg=LOG, lspci=LSPCI, nvidia=query("3B"))
    found = import_files([root])
    assert found.facts.keys() == {KernelLog, PciDevices, Gpus}
    assert found.notes == ()


@pytest.mark.parametrize("number", [1, 2, 5, 6])
def test_files_that_are_not_dumps_are_reported_once(tmp_path: Path, number: int) -> None:
    others = {f"nvidia{place}": "hello\n" for place in range(number)}
    root = folder_of(tmp_path, dmesg=LOG, lspci=LSPCI, nvidia=CUT_OFF, **others)
    found = import_files([root])
    assert found.facts.keys() == {KernelLog, PciDevices, Gpus}
    matrix, unread = sorted(found.notes, key=lambda note: "not understood" in note)
    assert matrix.startswith("nvidia: ")
    assert unread.startswith(f"report: {number} file")
    assert [name in unread for name in others] == [True] * min(number, 5) + [False] * (number - 5)


def test_notes_of_the_first_file_are_kept(tmp_path: Path) -> None:
    found = import_files([folder_of(tmp_path, topo=CUT_OFF, nvidia="hello\n", xid=LOG)])
    assert sorted(note.partition(":")[0] for note in found.notes) == ["report", "topo"]
    assert found.facts.keys() == {Gpus, KernelLog}


def test_folder_with_other_files_only_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file in it"):
        import_files([folder_of(tmp_path, nvidia="hello\n", hosts="hello\n")])


def test_names_decide_only_in_a_folder_of_many_files(tmp_path: Path) -> None:
    root = folder_of(tmp_path, machine7=query("3B"), dmesg=LOG)
    assert import_files([root]).facts.keys() == {Gpus, KernelLog}
    for number in range(60):
        (root / f"hosts{number}").touch()
    assert import_files([root]).facts.keys() == {KernelLog}
