"""Long kernel logs, which are read block by block."""

from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import group
from kdoctor.facts import KernelLog
from kdoctor_recordings.formats import kernel_log, split
from kdoctor_recordings.importer import import_files

START = "[    0.000000] Linux version 6.8.0 (builder@host)\n"
XID = "[{:12.6f}] NVRM: Xid (PCI:0000:3b:00): {}, pid='<unknown>', name=<unknown>, a message\n"


def log_of(path: Path) -> KernelLog:
    return group(import_files([path]).facts, KernelLog)


@pytest.mark.parametrize("block", [100, 127, 1000])
@pytest.mark.parametrize("rest", ["", "[  500.0] NVRM: Xid (PCI:0000:3b:00): 4", "[  500.0] usb 1-1: new dev"])
def test_log_in_blocks_has_the_events_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, rest: str
) -> None:
    path = tmp_path / "dmesg"
    lines = (XID.format(number + 0.5, 31 if number % 2 else 79) for number in range(60))
    path.write_text(START + "".join(lines) + rest, encoding="utf-8")
    short = log_of(path)
    monkeypatch.setattr(kernel_log, "_LONG_BYTES", 1000)
    monkeypatch.setattr(kernel_log, "_BLOCK_BYTES", block)
    assert log_of(path) == short
    assert [event.code for event in short.events] == [79, 31] * 30


def test_long_log_within_other_output_is_read_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dmesg"
    path.write_text(START + XID.format(1, 79) * 20 + "GPU 0: NVIDIA Test 40GB (UUID: GPU-1)\n", encoding="utf-8")
    monkeypatch.setattr(kernel_log, "_LONG_BYTES", 1000)
    monkeypatch.setattr(kernel_log, "_BLOCK_BYTES", 200)
    assert {event.code for event in log_of(path).events} == {79}


def test_only_a_long_log_alone_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_log, "_LONG_BYTES", 1000)
    monkeypatch.setattr(kernel_log, "_BLOCK_BYTES", 200)
    path = tmp_path / "dmesg"
    for text, is_read in (
        (START + XID.format(1, 79) * 20, True),
        (START + XID.format(1, 79), False),  # short
        ("GPU 0: NVIDIA Test 40GB (UUID: GPU-1)\n" * 30, False),
        (START.replace("Linux", "Lin\0ux") + XID.format(1, 79) * 20, False),
        (bytes(3).decode() + XID.format(1, 79) * 20, False),
    ):
        path.write_text(text, encoding="utf-8")
        part = kernel_log.read_long(path, split.is_log_alone)
        assert (part is not None) is is_read, text[:80]
        if part:
            (log,) = part.groups
            assert isinstance(log, KernelLog)
            assert [event.code for event in log.events] == [79] * 20
    assert kernel_log.read_long(tmp_path, split.is_log_alone) is None


@cases(
    ("[  500.000000] usb 1-1: new device", True),
    ("[  500.000000] NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python", True),
    ("[  500.000000] NVRM: Xid (PCI:0000:3b:00): 3", False),
    ("[  500.000000] NVRM: Xid (PCI:0000:3b:00): ", False),
)
def test_last_line_without_line_end_counts_unless_its_code_may_be_cut(
    tmp_path: Path, last: str, *, is_counted: bool
) -> None:
    path = tmp_path / "dmesg"
    path.write_text(f"{START}{last}", encoding="utf-8")
    assert log_of(path).lines == 1 + is_counted


@pytest.mark.parametrize(("more", "is_long"), [(1, False), (0, True), (-1, True)])
def test_log_of_the_limit_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int, *, is_long: bool) -> None:
    path = tmp_path / "dmesg"
    path.write_text(START + XID.format(1, 79), encoding="utf-8")
    monkeypatch.setattr(kernel_log, "_LONG_BYTES", path.stat().st_size + more)
    assert (kernel_log.read_long(path, split.is_log_alone) is not None) is is_long
