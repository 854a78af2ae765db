"""The limits of the readers of dumps, and what they read next to a limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.kdoctor_recordings.dumps import LOG, TABLE, UUID, imported, imported_gpus, query, xml
from kdoctor.facts import KernelDriver
from kdoctor_recordings.facts import Diagnostics
from kdoctor_recordings.formats.part import Section
from kdoctor_recordings.formats.proc_version import parse
from kdoctor_recordings.formats.processes import read_processes
from kdoctor_recordings.formats.smi_csv import is_row
from kdoctor_recordings.formats.smi_topo import parse_levels as parse_topology
from kdoctor_recordings.formats.smi_xml import _Reader
from kdoctor_recordings.formats.split import decode, is_log_alone, unquote
from kdoctor_recordings.formats.values import NotKnownError
from kdoctor_recordings.importer import import_files


@pytest.mark.parametrize(
    ("start", "alone"),
    [
        (LOG.encode(), True),
        (LOG.encode() + b"\0", False),
        (b"\x1f\x8b" + LOG.encode(), False),
        (b"\xff\xfe" + LOG.encode("utf-16-le"), False),
        (query("3B").encode(), False),
        (f"{LOG}{query('3B')}".encode(), False),
        (b"", False),
    ],
)
def test_log_alone_is_text_without_another_dump(start: bytes, *, alone: bool) -> None:
    assert is_log_alone(start) is alone


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("length", "is_decoded"), [(8, False), (9, True)])
def test_wide_text_without_a_mark_is_known_by_nine_zeros(codec: str, length: int, *, is_decoded: bool) -> None:
    text = "x" * length
    assert decode(text.encode(codec)) == text  # zeros are removed from other text
    other = "é" * 2 + "x" * (length - 2)
    assert (decode(other.encode(codec)) == other) is is_decoded


@pytest.mark.parametrize(
    ("lines", "plain"),
    [
        (["node7: a", "node7: b", "node7: c", "node7: d"], ["node7: a", "node7: b", "node7: c", "node7: d"]),
        (["> a", "> b"], ["a", "b"]),
        (["  a", "    b"], ["a", "  b"]),
        (["a", "  b"], ["a", "  b"]),
        ([], []),
    ],
)
def test_marks_before_lines_are_removed(lines: list[str], plain: list[str]) -> None:
    assert unquote(lines) == plain


@pytest.mark.parametrize(("number", "listed"), [(5, "f4"), (6, "and 1 more")])
def test_files_that_are_not_dumps_are_counted(tmp_path: Path, number: int, listed: str) -> None:
    (tmp_path / "gpus").mkdir()
    (tmp_path / "gpus" / "nvidia-smi-q.txt").write_text(query("3B"), encoding="utf-8")
    for index in range(number):
        (tmp_path / "gpus" / f"nvidia-smi-q.f{index}.log").write_text("Hello\n", encoding="utf-8")
    (note,) = (note for note in import_files([tmp_path / "gpus"]).notes if "not understood" in note)
    assert f"{number} files not understood" in note
    assert listed in note


CSV = "name, memory.total [MiB]\nNVIDIA Test 40GB, 40960 MiB\nNVIDIA Test 40GB, 40960 MiB\n"


def test_rows_without_identity_are_all_gpus_unless_some_were_selected(tmp_path: Path) -> None:
    assert [gpu.index for gpu in imported_gpus(tmp_path, CSV).devices] == [0, 1]
    named = (
        CSV.replace("name,", "name, index,").replace("40GB,", "40GB, 3,", 1).replace("40GB, 40960", "40GB, 5, 40960")
    )
    assert [gpu.index for gpu in imported_gpus(tmp_path, named).devices] == [3, 5]
    selected = f"$ nvidia-smi --query-gpu=name,memory.total --format=csv -i 1,2\n{CSV}"
    listed = [note for note in imported(tmp_path, selected).notes if "without index" in note]
    assert [note[-5:] for note in listed] == ["GPU 0", "GPU 1"]
    assert not [note for note in imported(tmp_path, CSV).notes if "without index" in note]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (f"0, {UUID.format(1)}", True),
        ("0, 00000000:3B:00.0", True),
        ("Hello, world", False),
        ("0, 1", False),
    ],
)
def test_row_without_a_header_is_known_by_an_identity(row: str, *, expected: bool) -> None:
    assert bool(is_row(row)) is expected


def topology(text: str) -> Any:
    lines = tuple(text.splitlines())
    return parse_topology(Section(kind="nvidia-smi topo -m", file="t", lines=lines, whole=True, ended=True))


def test_matrix_has_each_pair_once_and_the_affinities() -> None:
    part = topology(
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tNV4\t0-1,8-9\t0\tN/A\nGPU1\tNV4\t X \t2,4\t1\t3\n"
    )
    assert {pair: found.facts for pair, found in part.pairs.items()} == {(0, 1): {"nvlinks": 4}}
    assert part.gpus[0].facts["cpu_affinity"] == (0, 1, 8, 9)
    assert part.gpus[1].facts["cpu_affinity"] == (2, 4)
    assert part.gpus[1].facts["gpu_numa_id"] == 3
    assert part.gpus[0].errors["gpu_numa_id"] == "N/A"


def test_elements_without_text_are_no_entries() -> None:
    reader = _Reader()
    for name in ("nvidia_smi_log", "driver_version"):
        reader.start(name, {})
    reader.text("570.1")
    reader.end("driver_version")
    for name in ("gpu", "fb_memory_usage", "total"):
        reader.start(name, {"id": "00000000:3B:00.0"} if name == "gpu" else {})
    reader.text("40960 MiB")
    for name in ("total", "fb_memory_usage"):
        reader.end(name)
    (block,) = reader.blocks
    assert not block.ended
    for name in ("gpu", "nvidia_smi_log"):
        reader.end(name)
    assert reader.head == {"driver version": "570.1"}
    assert block.entries == {"fb memory usage/total": "40960 MiB"}
    assert block.ended


NVRM = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.158.01  Mon Jun  2 14:46:07 UTC 2025"


@pytest.mark.parametrize(
    ("lines", "whole", "version"),
    [
        ((NVRM,), True, "570.158.01"),
        ((NVRM, "GCC version:  gcc"), False, "570.158.01"),
        (("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.158.01",), True, "570.158.01"),
        (("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.158.01",), False, None),  # the last word may be cut off
    ],
)
def test_version_that_may_be_cut_off_is_unknown(lines: tuple[str, ...], *, whole: bool, version: str | None) -> None:
    section = Section(kind="/proc/driver/nvidia/version", file="v", lines=lines, whole=whole, ended=whole)
    (group,) = parse(section).groups
    assert isinstance(group, KernelDriver)
    assert group.version == version


def process(pid: int, **more: str) -> dict[str, str]:
    return {"process id": str(pid), "type": "C", "name": "python", **more}


USED = {"used gpu memory": "10 MiB"}


def test_last_process_of_a_file_that_ends_may_be_incomplete() -> None:
    whole = [process(1, **USED), process(2, **USED)]
    assert [one.pid for one in read_processes("", whole, more=True)] == [1, 2]
    cut = [process(1, **USED), process(2)]
    assert [one.pid for one in read_processes("", cut, more=True)] == [1]
    assert [one.pid for one in read_processes("", cut, more=False)] == [1, 2]
    assert [one.pid for one in read_processes("", [process(1), process(2, **USED)], more=True)] == [1, 2]
    with pytest.raises(NotKnownError):
        read_processes("", [process(1)], more=True)
    assert read_processes("None", [], more=True) == ()


def test_each_row_of_the_table_is_a_gpu(tmp_path: Path) -> None:
    first = imported_gpus(tmp_path, TABLE)
    assert len(first.devices) == first.count
    body = TABLE.partition("Processes:")[0].rsplit("\n", 2)[0]
    alone = imported_gpus(tmp_path, body)
    assert [gpu.bus_id for gpu in alone.devices] == [gpu.bus_id for gpu in first.devices]
    assert alone.devices[0].processes is None


def test_document_with_several_gpus_is_read_once(tmp_path: Path) -> None:
    assert [gpu.bus_id for gpu in imported_gpus(tmp_path, xml("3B", "AF")).devices] == ["0000:3b:00.0", "0000:af:00.0"]


def test_sxids_are_results_of_the_fabric_manager(tmp_path: Path) -> None:
    lines = (
        "[Jan 05 2026 10:00:00] [ERROR] [tid 1] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id "
        "00000000:C1:00.0 physical id 1 port 3\n"
    )
    found = [group for group in imported(tmp_path, lines * 2).facts.values() if isinstance(group, Diagnostics)]
    assert [(item.test, item.status) for group in found for item in group.results] == [("SXid 20034", "fail")]
