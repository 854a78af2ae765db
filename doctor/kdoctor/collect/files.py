"""Reads the small files of /proc and /sys."""

from __future__ import annotations

from pathlib import Path


def read_text(path: Path) -> str | None:
    """The file's text without surrounding white space; None if there is no such file.

    Raises:
        OSError: the file is there, but it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_quietly(path: Path) -> str | None:
    """The same, and None too if it cannot be read."""
    try:
        return read_text(path)
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """The number in the file; None if it cannot be read or is no number."""
    try:
        return int(read_quietly(path) or "")
    except ValueError:
        return None


def reason(error: OSError) -> str:
    """Why a file could not be read: the path and the system's words."""
    return f"{error.filename}: {error.strerror or error}"
