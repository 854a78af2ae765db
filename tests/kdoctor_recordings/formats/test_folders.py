"""Folders and archives of dumps."""

import io
import random
import tarfile
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import LOG, LSPCI, query
from kdoctor.errors import UsageError
from kdoctor.facts import Gpus, KernelLog, PciDevices
from kdoctor_recordings.formats import folders
from kdoctor_recordings.importer import import_files

pytestmark = pytest.mark.skipif(
    not hasattr(tarfile, "data_filter"), reason="this Python, as Debian 12's, refuses archives"
)


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


def archive_of(folder: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """An archive with these members."""
    path = folder / "report.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return path


def member(name: str, *, size: int = 0, link: str = "", kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    """The head of a member of an archive."""
    info = tarfile.TarInfo(name)
    info.size, info.linkname, info.type = size, link, kind
    return info


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside"])
def test_links_out_of_an_archive_are_refused(tmp_path: Path, target: str) -> None:
    path = archive_of(tmp_path, (member("dmesg", link=target, kind=tarfile.SYMTYPE), b""))
    with pytest.raises(UsageError, match="not safe"):
        import_files([path])


def test_devices_and_hard_links_of_an_archive_are_left_out(tmp_path: Path) -> None:
    log = LOG.encode()
    path = archive_of(
        tmp_path,
        (member("nvidia0", kind=tarfile.CHRTYPE), b""),
        (member("nvidia-pipe", kind=tarfile.FIFOTYPE), b""),
        (member("nvidia-link", link="/etc/passwd", kind=tarfile.LNKTYPE), b""),
        (member("dmesg", size=len(log)), log),
    )
    assert set(import_files([path]).facts) == {KernelLog}


def test_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    size = folders._MOST_BYTES + 1
    path = tmp_path / "report.tar"
    path.write_bytes(member("dmesg", size=size).tobuf() + bytes(10_240))
    with pytest.raises(UsageError, match="limit for an archive"):
        import_files([path])


def test_archive_of_too_many_members_that_are_left_out_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_MOST_FILES", 3)
    devices = ((member(f"nvidia{number}", kind=tarfile.CHRTYPE), b"") for number in range(5))
    with pytest.raises(UsageError, match="3 files"):
        import_files([archive_of(tmp_path, *devices)])


def test_damaged_archive_is_refused(tmp_path: Path) -> None:
    log = LOG.encode() + random.Random(1).randbytes(40_000)  # noqa: S311 - nothing secret
    path = archive_of(tmp_path, (member("dmesg", size=len(log)), log))
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(UsageError, match="damaged archive"):
        import_files([path])


def test_python_that_cannot_unpack_safely_refuses_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive_of(tmp_path, (member("dmesg", size=len(LOG)), LOG.encode()))
    monkeypatch.delattr(tarfile, "data_filter")
    with pytest.raises(UsageError, match="cannot unpack"):
        import_files([path])


@pytest.mark.parametrize("name", ["../dmesg", "/dmesg"])
def test_members_that_lead_out_of_an_archive_are_refused(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "report.tar", "w") as archive:
        archive.addfile(member(name, size=len(LOG.encode())), io.BytesIO(LOG.encode()))
    if name.startswith("/"):  # the leading slash is dropped
        assert set(import_files([tmp_path / "report.tar"]).facts) == {KernelLog}
        return
    with pytest.raises(UsageError, match="archive"):
        import_files([tmp_path / "report.tar"])


def test_number_of_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = report(tmp_path)
    known = list(folders.dumps(root))
    assert len(known) > 2
    monkeypatch.setattr(folders, "_MOST_FILES", 2)
    assert list(folders.dumps(root)) == known[:2]
    monkeypatch.setattr(folders, "_MOST_LISTED", len([*root.rglob("*")]) - 1)
    with pytest.raises(UsageError, match="more than"):
        list(folders.dumps(root))


def test_archive_at_both_limits_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [LOG.encode(), LOG.replace(": 79", ": 31").encode()]
    names = ("dmesg", "dmesg.1")
    path = archive_of(tmp_path, *((member(n, size=len(text)), text) for n, text in zip(names, contents, strict=True)))
    monkeypatch.setattr(folders, "_MOST_FILES", 2)
    monkeypatch.setattr(folders, "_MOST_BYTES", sum(map(len, contents)))
    assert set(import_files([path]).facts) == {KernelLog}
    monkeypatch.setattr(folders, "_MOST_BYTES", sum(map(len, contents)) - 1)
    with pytest.raises(UsageError, match="limit for an archive"):
        import_files([path])


@cases(
    ("dmesg", True),
    ("var/log/messages", True),
    ("var/log/messages.1", True),
    ("var/log/kern.log.2.gz", True),
    ("nvidia-smi.TXT", True),
    ("lspci.log", True),
    ("gpu.topo.json", True),
    ("proc/driver/nvidia/version", True),
    ("XID.csv", True),
    ("nvidia.html", False),
    ("nvidia-driver.rpm", False),
    ("nvidia-1.0a", False),
    ("hosts", False),
    ("my-version", False),
    ("sys/module/nvidia/version", False),
    ("copy/sys/module/nvidia/version", False),
    ("mysys/nvidia.txt", True),
)
def test_dumps_of_a_large_folder_are_known_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, is_read: bool
) -> None:
    monkeypatch.setattr(folders, "_FEW", 0)
    file = tmp_path / "report" / name
    file.parent.mkdir(parents=True)
    file.write_text("text", encoding="utf-8")
    assert list(folders.dumps(tmp_path / "report")) == ([file] if is_read else [])


def test_only_files_of_the_folder_itself_that_are_not_empty_are_dumps(tmp_path: Path) -> None:
    root = tmp_path / "report"
    (root / "nvidia").mkdir(parents=True)
    for name in ("report/z-dmesg", "report/dmesg", "outside"):
        (tmp_path / name).write_text(LOG, encoding="utf-8")
    (root / "dmesg.1").write_bytes(b"")
    (root / "dmesg.2").symlink_to("dmesg")
    (root / "dmesg.3").symlink_to("../outside")
    (root / "dmesg.4").symlink_to("nothing")
    assert [file.name for file in folders.dumps(root)] == ["dmesg", "dmesg.2", "z-dmesg"]


def test_archive_is_known_by_its_content(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, (member("dmesg", size=len(LOG)), LOG.encode()))
    for name, content, expected in (
        ("archive", archive.read_bytes(), True),
        ("report.tar", LOG.encode(), False),
        ("zeros.tar", bytes(20_000), False),
        ("empty.tar", b"", False),
        ("cut.tar.gz", archive.read_bytes()[:30], False),
    ):
        (tmp_path / name).write_bytes(content)
        assert folders.is_collection(tmp_path / name) is expected, name
    assert folders.is_collection(tmp_path)
    assert not folders.is_collection(tmp_path / "nothing")
