"""Folders and archives of dumps."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from helpers.dumps import LOG, LSPCI, query
from kdoctor.errors import UsageError
from kdoctor.facts import Gpus, KernelLog, PciDevices
from kdoctor.snapshot.imports.importer import import_files


def report(folder: Path) -> Path:
    """A sosreport, with files that are not dumps."""
    root = folder / "sosreport-node7-2026-01-05"
    for name, text in (
        ("sos_commands/kernel/dmesg", LOG),
        ("sos_commands/pci/lspci_-nnvv", LSPCI),
        ("sos_commands/nvidia/nvidia-smi_-q", query("3B")),
        ("sos_commands/nvidia/nvidia-smi_--help", "a help text\n"),
        ("etc/hosts", "127.0.0.1 localhost\n"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_sosreport_is_read_as_a_folder_and_as_an_archive(tmp_path: Path) -> None:
    root = report(tmp_path)
    with tarfile.open(tmp_path / "report.tar.xz", "w:xz") as archive:
        archive.add(root, arcname=root.name)
    for path in (root, tmp_path / "report.tar.xz"):
        found = import_files([path])
        assert set(found.facts) == {Gpus, PciDevices, KernelLog}
        assert any("nvidia-smi_--help" in note for note in found.notes)


def test_copy_of_sys(tmp_path: Path) -> None:
    device = tmp_path / "copy/sys/bus/pci/devices/0000:3b:00.0"
    device.mkdir(parents=True)
    for name, text in (("vendor", "0x10de\n"), ("class", "0x030200\n"), ("numa_node", "1\n")):
        (device / name).write_text(text, encoding="ascii")
    pci = import_files([tmp_path / "copy"]).facts[PciDevices]
    assert isinstance(pci, PciDevices)
    assert [(gpu.bus_id, gpu.numa_node) for gpu in pci.gpus] == [("0000:3b:00.0", 1)]


def test_links_out_of_a_copy_of_sys_are_refused(tmp_path: Path) -> None:
    devices = tmp_path / "copy/sys/bus/pci/devices"
    devices.mkdir(parents=True)
    (devices / "0000:3b:00.0").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="lead out of it"):
        import_files([tmp_path / "copy"])


@pytest.mark.parametrize("name", ["../dmesg", "/dmesg"])
def test_members_that_lead_out_of_an_archive_are_refused(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "report.tar", "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(LOG.encode())
        archive.addfile(member, io.BytesIO(LOG.encode()))
    if name.startswith("/"):  # the leading slash is dropped
        assert set(import_files([tmp_path / "report.tar"]).facts) == {KernelLog}
        return
    with pytest.raises(UsageError, match="archive"):
        import_files([tmp_path / "report.tar"])


def test_folder_without_dumps_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dmesg").write_text("hello\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no file in it"):
        import_files([tmp_path])
