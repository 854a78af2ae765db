"""Lines of imported output that were not understood are counted, kept with their numbers, and shown."""

import json
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.command import kdoctor
from helpers.kdoctor_recordings.dumps import LSPCI, NVLINK, TABLE, TOPOLOGY, group, imported, query, xml
from kdoctor.facts import Gpus
from kdoctor_recordings.facts import ImportedLines

VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 17 22:55:48 UTC 2024\n"
FAILED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\nMake sure it is running.\n\n"
STRANGE = "Frobnication of GPU 0 failed"


def unread(folder: Path, *texts: str) -> list[tuple[str, int, str]]:
    """File, number and text of the lines that were not understood."""
    found = imported(folder, *texts).facts.get(ImportedLines)
    if found is None:
        return []
    assert isinstance(found, ImportedLines)
    assert found.count == len(found.lines)
    return [(line.file, line.line, line.text) for line in found.lines]


@pytest.mark.parametrize("text", [TABLE, TOPOLOGY, NVLINK, LSPCI, VERSION, FAILED, xml("3B")])
def test_line_after_output_is_kept_with_its_number(tmp_path: Path, text: str) -> None:
    assert unread(tmp_path, f"{text}{STRANGE}\n") == [("file-0", text.count("\n") + 1, STRANGE)]


@pytest.mark.parametrize("text", [TABLE, TOPOLOGY, NVLINK, LSPCI, VERSION, FAILED, query("3B"), xml("3B")])
def test_line_before_output_is_kept(tmp_path: Path, text: str) -> None:
    assert unread(tmp_path, f"\x1b[1m{STRANGE}\n\n{text}") == [("file-0", 1, STRANGE)]


def test_control_characters_are_not_kept(tmp_path: Path) -> None:
    assert unread(tmp_path, f"a\x9b2Jb\x85c\n{NVLINK}") == [("file-0", 1, "a 2Jb c")]


def test_count_is_in_the_report_and_lines_are_in_verbose(tmp_path: Path) -> None:
    (tmp_path / "links").write_text(f"{NVLINK}{STRANGE}\n", encoding="utf-8")
    snapshot = tmp_path / "snapshot.json"
    quiet = kdoctor("snapshot", "--import", tmp_path / "links", "-o", snapshot)
    assert quiet.stderr.count("not understood") == 1
    verbose = kdoctor("snapshot", "-v", "--import", tmp_path / "links", "-o", snapshot)
    assert f"links:9: not understood: {STRANGE}" in verbose.stderr
    done = kdoctor("check", "--snapshot", snapshot, "--no-smoke", "--format", "json")
    assert "1 imported line not understood" in json.loads(done.stdout)["target"]
    shown = kdoctor("check", "--snapshot", snapshot, "--no-smoke")
    assert shown.stdout.count("not understood") == 1


P2P = "\tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n"
CSV = "index, name, pci.bus_id\n0, NVIDIA Test 40GB, 00000000:3B:00.0\n1, NVIDIA Test 40GB, 00000000:AF:00.0\n"
MANAGER = "[Jan 05 2026 10:00:00] [INFO] [tid 12] Fabric Manager starting\n" * 3
DCGM = """\
{
 "DCGM Diagnostic": {
  "test_categories": [
   {"category": "Hardware", "tests": [{"name": "pcie", "results": [{"gpu_ids": "0", "status": "Pass"}]}]}
  ]
 }
}
"""
FRAME, ROW = "| Frobnication failed |", "|  Frobnication failed  |  1  |  2  |"


@cases(
    (query("3B"), "Frobnication : Failed", 2),
    (query("3B"), "        Frobnication : Failed", 2),
    (query("3B"), "                Frobnication : Failed", 8),
    (query("3B"), "    Memory error count : Unknown Error", 8),
    (xml("3B"), "<frobnication>Failed</frobnication>", 3),
    (xml("3B"), "<frob><nication>Failed</nication></frob>", 3),
    (TABLE, STRANGE, 2),
    (TABLE, FRAME, 2),
    (TABLE, ROW, 2),
    (TOPOLOGY, "FROB0\tfailed\tSYS\tSYS\tSYS", 1),
    (P2P, "FROB0\tfailed\tOK", 1),
    (NVLINK, "\t Frobnication: failed", 1),
    (LSPCI, "\tFrobnication: failed", 1),
    (LSPCI, "\t\tFrobSta:\tFailed+ Frob-", 1),
    (LSPCI, "\tFrobnication failed", 1),
    (CSV, "frobnication, has, failed", 1),
    (CSV, "frobnication failed", 1),
    (VERSION, "Frob version: failed", 1),
    (MANAGER, "[Jan 05 2026 10:00:00] [WARNING] [tid 12] frobnication failed", 1),
    (MANAGER, "frobnication failed", 1),
)
def test_unknown_line_is_counted_wherever_it_is(tmp_path: Path, text: str, planted: str, first: int) -> None:
    def count(lines: list[str]) -> int:
        facts = imported(tmp_path, "\n".join(lines)).facts
        unread, gpus = facts.get(ImportedLines), facts.get(Gpus)
        kept = len(gpus.not_understood) if isinstance(gpus, Gpus) else 0
        return kept + (unread.count if isinstance(unread, ImportedLines) else 0)

    lines = text.split("\n")
    for place in sorted({first, first + 1, (first + len(lines)) // 2, len(lines) - 3}):
        assert count([*lines[:place], planted, *lines[place:]]) > count(lines), f"line {place + 1}"


def test_unknown_field_of_json_is_counted(tmp_path: Path) -> None:
    assert unread(tmp_path, DCGM) == []
    for start in ('{"c', '{\n "'):
        one = DCGM.replace(start, start.replace('"', '"frobnication": "failed", "'), 1)
        assert [line[2].partition(":")[0] for line in unread(tmp_path, one)] == ['"frobnication"']


def test_fault_below_known_heading_is_not_taken_as_known(tmp_path: Path) -> None:
    broken = query(
        "3B", changes={"        Reserved                          : 550 MiB": "        Reserved : Unknown Error"}
    )
    found = [imported(tmp_path, text).facts[Gpus] for text in (query("3B"), broken)]
    assert [gpus.not_understood for gpus in found if isinstance(gpus, Gpus)] == [
        (),
        ("file-0: fb memory usage/reserved: Unknown Error",),
    ]


def test_lines_between_lost_gpus_are_kept(tmp_path: Path) -> None:
    lost = "Unable to determine the device handle for GPU{}: 0000:{}:00.0: Unknown Error\n"
    text = f"{lost.format(0, '3B')}{STRANGE}\n{lost.format(1, 'AF')}and more\n"
    assert unread(tmp_path, text) == [("file-0", 2, STRANGE), ("file-0", 4, "and more")]


def test_lines_around_xml_are_kept(tmp_path: Path) -> None:
    text = xml("3B")
    number = text.count("\n")
    found = unread(tmp_path, f"{STRANGE}\n{text}{STRANGE}\n<frob/>\n")
    assert found == [("file-0", 1, STRANGE), ("file-0", number + 2, STRANGE), ("file-0", number + 3, "<frob/>")]


def test_row_of_the_table_is_listed_with_the_gpus_only(tmp_path: Path) -> None:
    """A row among the GPUs is not understood; a row above or below them is an unread line."""
    lines = TABLE.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("|==")) + 1
    end = next(place for place, line in enumerate(lines) if line.startswith("| Processes:"))
    for place, is_row in ((first - 1, False), (first, True), (end - 1, True), (end, True), (end + 1, False)):
        text = "\n".join([*lines[:place], ROW, *lines[place:], ""])
        gpus = group(imported(tmp_path, text).facts, Gpus)
        assert (len(gpus.not_understood), len(unread(tmp_path, text))) == ((1, 0) if is_row else (0, 1)), place
