"""Finds the GPU code in a shared library: machine code and PTX, by fatbin.

The layout is that of ``fatbinary_section.h`` and of what nvcc writes: a header (magic, version, its size, size of the
images), then for each image a header (kind, its size, size of the image, ..., ISA version, architecture, ..., flags)
and the image. A PTX image starts with ``.version`` and ``.target``, which are read where LZ4 compresses it; Zstandard
(CUDA 12.8 and newer) leaves the header, whose flags state the suffix of the target.

Fatbins of the compiler are in the sections ``.nv_fatbin`` and ``__nv_relfatbin``. TensorFlow's kernel generator embeds
its own as data in ``.rodata``.
"""

import mmap
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kdoctor_target.inspect.elf import read_sections

Place = Literal["nv_fatbin", "kernel_gen"]
"""Where a fatbin is: in a section of the compiler's fatbins, or in the data of TensorFlow's kernel generator."""

_MAGIC = struct.pack("<I", 0xBA55ED50)
_HEADER = struct.Struct("<IHHQ")
_IMAGE = struct.Struct("<HHIQIIHHIIIQ")
_PTX, _MACHINE_CODE = 1, 2
_LZ4, _ZSTANDARD = 0x2000, 0x8000
_SPECIFIC, _FAMILY = 0x100000, 0x200000
"""Flags of targets such as sm_90a and sm_100f."""

_PROLOGUE = re.compile(rb"\.version\s+(\d+\.\d+)\s+\.target\s+sm_(\d+[af]?)")
_PROLOGUE_BYTES = 4096
"""How much of a PTX image is read: comments precede its first directive."""


@dataclass(frozen=True, order=True)
class Image:
    """Code for one architecture."""

    kind: Literal["machine code", "PTX"]
    architecture: str
    """``90``, or ``90a`` for code that only that architecture runs."""
    isa: str | None = None
    """Version of the PTX language, which decides about the driver; None for machine code."""


def read_images(path: Path) -> Iterator[tuple[Place, Image]]:
    """Each image in a shared library.

    Raises:
        ElfError: the library is damaged.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        compiled = [
            range(each.offset, each.offset + each.size) for each in read_sections(file) if "fatbin" in each.name
        ]
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = data.find(_MAGIC)
            while at >= 0:
                end = _end_of_fatbin(data, at)
                inside = any(at in section for section in compiled)
                for image in _images(data, at + _HEADER.size, end):
                    yield ("nv_fatbin" if inside else "kernel_gen"), image
                at = data.find(_MAGIC, max(end, at + len(_MAGIC)))


def _end_of_fatbin(data: mmap.mmap, at: int) -> int:
    """Where the fatbin ends; the same offset if these bytes are not one."""
    if at + _HEADER.size > len(data):
        return at
    _, version, size, images = _HEADER.unpack_from(data, at)
    end = at + size + images
    return end if (version, size) == (1, _HEADER.size) and end <= len(data) else at


def _images(data: mmap.mmap, at: int, end: int) -> Iterator[Image]:
    while at + _IMAGE.size <= end:
        kind, _, header, size, packed, _, minor, major, architecture, _, _, flags = _IMAGE.unpack_from(data, at)
        start, at = at + header, at + header + size
        if header < _IMAGE.size or at > end or architecture == 0:
            return  # not an image: the fatbin is cut off
        suffix = "a" if flags & _SPECIFIC else "f" if flags & _FAMILY else ""
        if kind == _MACHINE_CODE:
            yield Image("machine code", f"{architecture}{suffix}")
        elif kind == _PTX:
            text = b"" if flags & _ZSTANDARD else data[start : start + (packed or size)]
            found = _PROLOGUE.search(unpack_lz4(text, _PROLOGUE_BYTES) if flags & _LZ4 else text[:_PROLOGUE_BYTES])
            if found:
                yield Image("PTX", found[2].decode(), found[1].decode())
            else:
                yield Image("PTX", f"{architecture}{suffix}", f"{major}.{minor}")


def unpack_lz4(data: bytes, wanted: int) -> bytes:
    """The first bytes of an LZ4 block, or fewer if it ends or is damaged.

    Source: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
    """
    out, at = bytearray(), 0

    def length(start: int) -> int:
        nonlocal at
        total = start
        while start == 15 and at < len(data):  # noqa: PLR2004 - all four bits are set: bytes follow
            total += data[at]
            at += 1
            if data[at - 1] != 255:  # noqa: PLR2004 - the largest byte
                break
        return total

    while at < len(data) and len(out) < wanted:
        token = data[at]
        at += 1
        literals = length(token >> 4)
        out += data[at : at + literals]
        at += literals
        if at + 2 > len(data):
            break
        back = int.from_bytes(data[at : at + 2], "little")
        at += 2
        count = length(token & 15) + 4
        if not 0 < back <= len(out):
            break
        for _ in range(min(count, wanted)):
            out.append(out[-back])
    return bytes(out[:wanted])
