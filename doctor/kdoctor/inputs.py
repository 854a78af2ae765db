"""Reads files that the user names: regular files of a bounded size."""

import os
import stat
from pathlib import Path

from kdoctor.errors import UsageError

LARGEST_BYTES = 512 * 2**20
"""A snapshot of 10,000 GPUs has a quarter of that."""
_FOREIGN = frozenset({"__pycache__", "site-packages", "dist-packages", "node_modules", "venv", "env", "__pypackages__"})
_OPENED = ("/dev/fd/", "/proc/", "/dev/stdin")


def expanded(name: str | Path) -> Path:
    """The path with ``~`` or ``~user`` replaced, or as it is if that home is not known."""
    return Path(os.path.expanduser(name))  # noqa: PTH111 - Path.expanduser raises


def is_folder(path: Path) -> bool:
    """Whether it is a folder, also for a name that cannot be one, such as a very long one."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises


def exists(path: Path) -> bool:
    """Whether it exists, also for a name that cannot, such as a very long one."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises


def is_foreign(parent: str, name: str) -> bool:
    """Whether a folder of a project has installed packages, which are not the user's files."""
    return name in _FOREIGN or Path(parent, name, "pyvenv.cfg").exists()


def refuse_special(path: Path) -> None:
    """Refuse to read a named pipe or a device: both can block, and a device may never end.

    The pipe of a process substitution, ``<(zcat node.json.gz)``, has a writer and is read.

    Raises:
        UsageError: it is one.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return  # reading it reports why
    is_read = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or str(path) == os.devnull or str(path).startswith(_OPENED)
    if not is_read:
        kind = "a named pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise UsageError(f"{path}: not a regular file but {kind}")


def read_bounded(path: Path, most: int = LARGEST_BYTES) -> bytes:
    """The content of a file.

    Args:
        path: the file.
        most: the number of bytes that it may have.

    Raises:
        UsageError: it is larger, or a named pipe or a device.
        OSError: it cannot be read.
    """
    refuse_special(path)
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > most:
            raise UsageError(f"{path}: larger than {most >> 20} MiB")
        return file.read()
