"""Reads folders and archives of dumps: a sosreport, an unpacked or packed bug report, a copy of /proc."""

import lzma
import os
import platform
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from kdoctor.errors import UsageError
from kdoctor.probes.process.run_folder import run_folder

_DUMPS = re.compile(
    r"nvidia|dmesg|journalctl|lspci|topo|syslog|messages|kern\.log|fabric|dcgm|numa_status|xid|(?:^|/)version$",
    re.IGNORECASE,
)
"""The names of files that may be dumps. A sosreport has thousands of others."""
_FEW = 50
"""Entries of a folder that a person has filled: each may be a dump, whatever its name."""
_SUFFIXES = (".txt", ".log", ".xml", ".csv", ".out", ".json", "")
_MOST_BYTES = 512 * 1024**2
_MOST_FILES = 20_000
_MOST_LISTED = 100_000
_UNPACK = "Unpack it yourself and import the folder."


def is_collection(path: Path) -> bool:
    """Whether the path is a folder or an archive."""
    return os.path.isdir(path) or (os.path.isfile(path) and _is_tar(path))  # noqa: PTH112, PTH113 - they never raise


def _is_tar(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            # The reader of xz skips zero bytes at the start, gigabytes of them in a sparse file.
            is_empty = not file.read(tarfile.BLOCKSIZE).strip(b"\0")
        return not is_empty and tarfile.is_tarfile(path)
    except (OSError, EOFError):
        return False


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """The folder, or a temporary one with the content of the archive.

    Raises:
        UsageError: the archive is damaged or too large, or has members that lead out of it.
    """
    if path.is_dir():
        yield path
        return
    if not hasattr(tarfile, "data_filter"):
        why = f"Python {platform.python_version()} cannot unpack archives safely"
        raise UsageError(f"{path}: {why} (Python 3.10.12, 3.11.4 or newer can)", hint=_UNPACK)
    with run_folder("import") as folder:
        try:
            with tarfile.open(path) as archive:
                members = _small(path, archive)
                archive.extractall(folder, members=members, filter="data")
        except tarfile.FilterError as error:
            raise UsageError(f"{path}: the archive is not safe to unpack: {error}", hint=_UNPACK) from error
        except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise UsageError(f"{path}: damaged archive: {error}") from error
        yield Path(folder)


def _small(path: Path, archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    members: list[tarfile.TarInfo] = []
    size = 0
    for count, member in enumerate(archive, start=1):
        size += member.size
        if size > _MOST_BYTES or count > _MOST_FILES:
            raise UsageError(
                f"{path}: larger than {_MOST_BYTES >> 20} MiB or {_MOST_FILES} files, the limit for an archive"
            )
        if member.isfile() or member.isdir() or member.issym():
            members.append(member)
    return members


def dumps(folder: Path) -> Iterator[Path]:
    """The files of a folder that may be dumps, in order of name; links are not followed out of it."""
    count = 0
    every = [*islice(folder.rglob("*"), _MOST_LISTED + 1)]
    if len(every) > _MOST_LISTED:
        raise UsageError(f"{folder}: more than {_MOST_LISTED:,} files", hint="Name the recording, or its own folder.")
    for file in sorted(every):
        name = file.relative_to(folder).as_posix()
        if name.startswith("sys/") or "/sys/" in f"/{name}" or not (len(every) <= _FEW or _DUMPS.search(name)):
            continue
        ending = file.suffix.lower()
        if not (ending in _SUFFIXES or ending.endswith("gz") or ending[1:].isdigit()):
            continue
        if file.is_file() and file.resolve().is_relative_to(folder.resolve()) and file.stat().st_size:
            count += 1
            if count > _MOST_FILES:
                return
            yield file
