"""Reads the small files of /proc and /sys."""

from pathlib import Path

_MOST_MEMBERS = 2**20
"""CPUs or nodes of a list. Linux has at most 8,192 CPUs."""


def read_text(path: Path) -> str | None:
    """The file's text without surrounding white space; None if the file does not exist.

    Raises:
        OSError: the file exists, but cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_quietly(path: Path) -> str | None:
    """Like :func:`read_text`, but None if the file cannot be read."""
    try:
        return read_text(path)
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """The number in the file; None if it cannot be read or is not a number."""
    return parse_int(read_quietly(path) or "")


def parse_int(text: str) -> int | None:
    """The number; None for any other text, and for one of thousands of digits."""
    try:
        return int(text)
    except ValueError:
        return None


def read_list(path: Path) -> tuple[int, ...] | None:
    """The numbers of a kernel list (``0-3,8``) in the file; None if it cannot be read or parsed."""
    text = read_quietly(path)
    return None if text is None else parse_list(text)


def read_speed(path: Path) -> str | None:
    """The speed of a PCIe link; None if it is unknown."""
    text = read_quietly(path)
    return text if text and not text.startswith("Unknown") else None


def read_width(path: Path) -> int | None:
    """Number of lanes of a PCIe link; 0 means no link, and 255 unreadable."""
    width = read_int(path)
    return width if width is not None and 0 < width <= 32 else None  # noqa: PLR2004 - the widest link there is


def link_target(path: Path) -> str | None:
    """The last component of a link's target, which need not exist (containers hide parts of sysfs)."""
    try:
        return path.readlink().name
    except OSError:
        return None


def parse_list(text: str) -> tuple[int, ...] | None:
    """The numbers of a kernel list such as ``0-3,8``; None for any other text."""
    numbers: list[int] = []
    try:
        for part in filter(None, text.strip().split(",")):
            first, dash, last = part.partition("-")
            found = range(int(first), int(last) + 1) if dash else [int(first)]
            if len(found) > _MOST_MEMBERS:
                return None
            numbers += found
    except (ValueError, OverflowError):
        return None
    return tuple(numbers)


def parse_mask(text: str) -> tuple[int, ...] | None:
    """The numbers of a kernel bit mask such as ``00000000,0000000f``; None for any other text."""
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
    """Why a file could not be read: its path and the system's message."""
    return f"{error.filename}: {error.strerror or error}"
