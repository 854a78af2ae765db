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


def read_list(path: Path) -> tuple[int, ...] | None:
    """The numbers of a kernel list (``0-3,8``) in the file; None if it cannot be read or is no list."""
    text = read_quietly(path)
    return None if text is None else parse_list(text)


def parse_list(text: str) -> tuple[int, ...] | None:
    """The numbers of ``0-3,8``, as the kernel writes sets of processors and nodes; None for any other text."""
    numbers: list[int] = []
    try:
        for part in filter(None, text.strip().split(",")):
            first, dash, last = part.partition("-")
            numbers += range(int(first), int(last) + 1) if dash else [int(first)]
    except ValueError:
        return None
    return tuple(numbers)


def parse_mask(text: str) -> tuple[int, ...] | None:
    """The numbers of ``00000000,0000000f``, the kernel's other way to write a set; None for any other text."""
    try:
        mask = int(text.replace(",", ""), 16)
    except ValueError:
        return None
    return tuple(number for number in range(mask.bit_length()) if mask >> number & 1)


def chosen_word(text: str | None) -> str | None:
    """The word in brackets of ``always [madvise] never``."""
    _, bracket, rest = (text or "").partition("[")
    word, closed, _ = rest.partition("]")
    return word if bracket and closed else None


def reason(error: OSError) -> str:
    """Why a file could not be read: the path and the system's words."""
    return f"{error.filename}: {error.strerror or error}"
