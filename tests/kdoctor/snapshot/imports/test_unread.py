"""Lines of imported output that were not understood are counted, kept with their numbers, and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.command import kdoctor
from helpers.dumps import LOG, LSPCI, NVLINK, TABLE, TOPOLOGY, imported, query, xml
from kdoctor.facts import ImportedLines
from kdoctor.snapshot.imports.unread import MOST

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


@pytest.mark.parametrize("text", [TABLE, TOPOLOGY, NVLINK, LSPCI, LOG, VERSION, FAILED, query("3B"), xml("3B")])
def test_complete_output_is_understood(tmp_path: Path, text: str) -> None:
    assert unread(tmp_path, text) == []


@pytest.mark.parametrize("text", [TABLE, TOPOLOGY, NVLINK, LSPCI, VERSION, FAILED, xml("3B")])
def test_line_after_output_is_kept_with_its_number(tmp_path: Path, text: str) -> None:
    assert unread(tmp_path, f"{text}{STRANGE}\n") == [("file-0", text.count("\n") + 1, STRANGE)]


@pytest.mark.parametrize("text", [TABLE, TOPOLOGY, NVLINK, LSPCI, VERSION, FAILED, query("3B"), xml("3B")])
def test_line_before_output_is_kept(tmp_path: Path, text: str) -> None:
    assert unread(tmp_path, f"\x1b[1m{STRANGE}\n\n{text}") == [("file-0", 1, STRANGE)]


@pytest.mark.parametrize(
    ("text", "after"),
    [(TOPOLOGY, "NIC0"), (NVLINK, "\t Link 1: <inactive>"), (LSPCI, "\tKernel modules"), (TABLE, "| Processes")],
)
def test_line_within_output_is_kept(tmp_path: Path, text: str, after: str) -> None:
    lines = text.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith(after)) + 1
    mixed = "\n".join([*lines[:place], STRANGE, *lines[place:], ""])
    assert unread(tmp_path, mixed) == [("file-0", place + 1, STRANGE)]


def test_lines_of_other_commands_are_kept(tmp_path: Path) -> None:
    text = f"$ lspci -vvv\n{LSPCI}$ cat /proc/frobnication\nstate: failed\n"
    assert unread(tmp_path, NVLINK, text) == [("file-1", text.count("\n"), "state: failed")]


def test_number_of_kept_lines_is_bounded(tmp_path: Path) -> None:
    found = imported(tmp_path, "".join(f"{STRANGE} {number}\n" for number in range(5000)) + NVLINK)
    lines = found.facts[ImportedLines]
    assert isinstance(lines, ImportedLines)
    assert (lines.count, len(lines.lines)) == (5000, MOST)
    assert len(found.notes) == 1
    assert "5000" in found.notes[0]


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
