"""ELF files and fatbins byte by byte: what readers of GPU code see, without a compiler."""

import struct
import sys
from pathlib import Path


def elf(path: Path, before: bytes = b"", /, **sections: bytes) -> Path:
    """A 64-bit file with these bytes in sections, in this order, and others before them."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*sections, "shstrtab"))
    rows, content, at = [bytes(64)], before, 1
    for name, data in {**sections, "shstrtab": names}.items():
        rows.append(struct.pack("=IIQQQQIIQQ", at, 1, 0, 0, 64 + len(content), len(data), 0, 0, 1, 0))
        content, at = content + data, at + len(name) + 1
    order = 1 if sys.byteorder == "little" else 2
    head = b"\x7fELF" + bytes([2, order, 1]) + bytes(9)
    head += struct.pack("=HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64 + len(content), 0, 64, 56, 0, 64, len(rows), len(rows) - 1)
    path.write_bytes(head + content + b"".join(rows))
    return path


def image(
    kind: int,
    architecture: int,
    content: bytes = b"code",
    isa: tuple[int, int] = (8, 5),
    flags: int = 0,
    *,
    packed: int = 0,
    head: int = 64,
) -> bytes:
    """One image: the header of 64 bytes that nvcc 12.5 writes, or of another length, and its content."""
    fields = (kind, 0x101, head, len(content), packed, 0, isa[1], isa[0], architecture, 0, 0, flags)
    return struct.pack("<HHIQIIHHIIIQ", *fields).ljust(head, b"\0") + content


def fatbin(*images: bytes, version: int = 1, header: int = 16, more: int = 0) -> bytes:
    """A fatbin with these images, whose header may state another version, another length or ``more`` bytes."""
    content = b"".join(images)
    return struct.pack("<IHHQ", 0xBA55ED50, version, header, len(content) + more) + content
