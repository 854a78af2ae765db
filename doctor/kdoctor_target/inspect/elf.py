"""Reads the parts of a shared library that the dynamic loader reads: its machine, its name, its search path.

Sources: the ELF specification (System V gABI, chapters 4 and 5); ``open_verify`` in glibc's elf/dl-load.c for which
files make the loader try the next directory, and which make it fail.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import BinaryIO, Dict, List, NamedTuple, Optional, Tuple

MACHINES = {
    3: "32-bit x86",
    20: "32-bit PowerPC",
    21: "PowerPC",
    40: "32-bit ARM",
    62: "x86-64",
    183: "aarch64",
    243: "RISC-V",
}
"""Names of ``e_machine``, for messages."""

_LARGEST = 1 << 20
"""Maximum number of bytes to read of a table or a string; real ones are far smaller."""

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 14, 15, 29
_DT_FLAGS_1, _DF_1_NODEFLIB = 0x6FFFFFFB, 0x800
_ET_EXEC, _ET_DYN = 2, 3


class ElfError(Exception):
    """The loader would choose this file and fail. The message says why."""


class OtherMachineError(Exception):
    """The file is for another machine, which makes the loader try the next directory. The message names the machine."""


class Header(NamedTuple):
    """The header of an ELF file."""

    bits: int
    """32 or 64."""
    machine: int
    """``e_machine``."""
    kind: int
    """``e_type``."""
    program_headers: Tuple[int, int, int]
    """The program headers: offset, size of one, number."""


class Section(NamedTuple):
    """A section of an ELF file that has bytes in the file."""

    name: str
    offset: int
    size: int


class Library(NamedTuple):
    """The fields of a shared library that the loader uses."""

    soname: Optional[str]
    needed: Tuple[str, ...]
    rpath: Optional[str]
    """``DT_RPATH``; the loader ignores it if ``DT_RUNPATH`` is present."""
    runpath: Optional[str]
    no_default_folders: bool
    """Whether it excludes the cache and the default directories (``DF_1_NODEFLIB``)."""


def read_header(file: BinaryIO) -> Header:
    """The header.

    Raises:
        ElfError: not an ELF file of this byte order, or truncated.
        OSError: it cannot be read.
    """
    head = file.read(64)
    if head and not b"\x7fELF".startswith(head[:4]):
        raise ElfError("not a shared library (invalid ELF header)")
    if len(head) < 52:  # noqa: PLR2004 - the size of a 32-bit header
        raise ElfError(f"truncated: {len(head)} bytes")
    bits = {1: 32, 2: 64}.get(head[4])
    order = {1: "little", 2: "big"}.get(head[5])
    if bits is None or order is None:
        raise ElfError("damaged (invalid ELF header)")
    if order != sys.byteorder:
        raise ElfError("its byte order is not this machine's")
    if bits == 64 and len(head) < 64:  # noqa: PLR2004 - the size of a 64-bit header
        raise ElfError(f"truncated: {len(head)} bytes")
    kind, machine = struct.unpack_from("=HH", head, 16)
    if bits == 64:  # noqa: PLR2004 - one of two
        (offset,) = struct.unpack_from("=Q", head, 32)
        size, count = struct.unpack_from("=HH", head, 54)
    else:
        (offset,) = struct.unpack_from("=I", head, 28)
        size, count = struct.unpack_from("=HH", head, 42)
    return Header(bits, machine, kind, (offset, size, count))


def own_header() -> Header:
    """The header of the running interpreter: what the loader requires of every library.

    Raises:
        ElfError: this interpreter is not an ELF file.
        OSError: it cannot be read.
    """
    path = "/proc/self/exe" if os.path.exists("/proc/self/exe") else sys.executable
    with open(path, "rb") as file:
        return read_header(file)


def verify(path: str, own: Header) -> None:
    """Return if the loader chooses this file and can map it.

    Raises:
        OSError: it cannot be opened; the loader tries the next directory.
        OtherMachineError: it is for another machine; the loader tries the next directory.
        ElfError: it is unusable; the loader chooses it anyway, and fails.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except IsADirectoryError as error:
        raise ElfError("it is a directory") from error
    with file:
        try:
            header = read_header(file)
            if (header.bits, header.machine) != (own.bits, own.machine):
                name = MACHINES.get(header.machine, f"machine {header.machine}")
                raise OtherMachineError(f"for another machine ({name})")
            if header.kind not in (_ET_DYN, _ET_EXEC):
                raise ElfError(f"not a shared library (ELF type {header.kind})")
            _verify_whole(file, header)
        except OSError as error:
            raise ElfError(f"cannot be read: {error.strerror or error}") from error


def _verify_whole(file: BinaryIO, header: Header) -> None:
    """The loader maps what the headers declare without checking the size, and dies of SIGBUS later."""
    size = os.fstat(file.fileno()).st_size
    promised = max((offset + length for _, offset, _, length in _segments(file, header)), default=0)
    if size < promised:
        raise ElfError(f"truncated: {size} of {promised} bytes")


def read_library(path: str) -> Library:
    """The dynamic section of a shared library, or of a program.

    Raises:
        ElfError: it is damaged, or statically linked.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        header = read_header(file)
        segments = _segments(file, header)
        dynamic = [segment for segment in segments if segment[0] == _PT_DYNAMIC]
        if not dynamic:
            raise ElfError("no dynamic section")
        entries = _dynamic_entries(file, header, dynamic[0])
        texts = _offset(segments, entries.get(_DT_STRTAB, [0])[0])

        def text(tag: int) -> Optional[str]:
            return _text(file, texts + entries[tag][0]) if tag in entries else None

        return Library(
            soname=text(_DT_SONAME),
            needed=tuple(_text(file, texts + offset) for offset in entries.get(_DT_NEEDED, [])),
            rpath=text(_DT_RPATH),
            runpath=text(_DT_RUNPATH),
            no_default_folders=bool(entries.get(_DT_FLAGS_1, [0])[0] & _DF_1_NODEFLIB),
        )


def read_sections(file: BinaryIO) -> List[Section]:
    """The sections of a 64-bit ELF file. The loader does not use them; a stripped file has none.

    Raises:
        ElfError: it is damaged, or has 32 bits.
        OSError: it cannot be read.
    """
    _seek(file, 0)
    if read_header(file).bits != 64:  # noqa: PLR2004 - one of two
        raise ElfError("sections of 32-bit files are not read")
    _seek(file, 0)
    head = file.read(64)
    (offset,) = struct.unpack_from("=Q", head, 40)
    size, count, names = struct.unpack_from("=HHH", head, 58)
    layout = "=IIQQQQIIQQ"
    if count and size != struct.calcsize(layout):
        raise ElfError(f"damaged (section headers of {size} bytes)")
    _seek(file, offset)
    table = file.read(size * count)
    if len(table) < size * count or (count and names >= count):
        raise ElfError("truncated: its section headers are missing")
    rows = list(struct.iter_unpack(layout, table)) if count else []
    no_bits = 8
    return [
        Section(_text(file, rows[names][4] + name), start, length)
        for name, kind, _, _, start, length, *_ in rows
        if kind != no_bits
    ]


def _segments(file: BinaryIO, header: Header) -> List[Tuple[int, int, int, int]]:
    """Type, offset in the file, address, and length in the file of each segment."""
    offset, size, count = header.program_headers
    layout = "=IIQQQQQQ" if header.bits == 64 else "=IIIIIIII"  # noqa: PLR2004 - one of two
    if size != struct.calcsize(layout):
        raise ElfError(f"damaged (program headers of {size} bytes)")
    _seek(file, offset)
    table = file.read(size * count)
    if len(table) < size * count:
        raise ElfError("truncated: its program headers are missing")
    segments = []
    for fields in struct.iter_unpack(layout, table):
        if header.bits == 64:  # noqa: PLR2004 - one of two
            kind, _, start, address, _, length = fields[:6]
        else:
            kind, start, address, _, length = fields[:5]
        if kind in (_PT_LOAD, _PT_DYNAMIC):
            segments.append((kind, start, address, length))
    return segments


def _dynamic_entries(file: BinaryIO, header: Header, segment: Tuple[int, int, int, int]) -> Dict[int, List[int]]:
    _seek(file, segment[1])
    layout = "=QQ" if header.bits == 64 else "=II"  # noqa: PLR2004 - one of two
    size = struct.calcsize(layout)
    data = file.read(min(segment[3], _LARGEST))
    entries: Dict[int, List[int]] = {}
    for tag, value in struct.iter_unpack(layout, data[: len(data) // size * size]):
        if tag == 0:
            break
        entries.setdefault(tag, []).append(value)
    return entries


def _offset(segments: List[Tuple[int, int, int, int]], address: int) -> int:
    """The offset of an address in the file."""
    for kind, start, first, length in segments:
        if kind == _PT_LOAD and first <= address < first + length:
            return address - first + start
    raise ElfError("damaged (its names are outside the file)")


def _seek(file: BinaryIO, offset: int) -> None:
    if offset >= 1 << 63:
        raise ElfError(f"damaged (an offset of {offset} bytes)")
    file.seek(offset)


def _text(file: BinaryIO, offset: int) -> str:
    """The NUL-terminated string at that offset."""
    _seek(file, offset)
    data = b""
    while b"\0" not in data and len(data) < _LARGEST:
        chunk = file.read(4096)
        if not chunk:
            raise ElfError("truncated: a name is missing")
        data += chunk
    return os.fsdecode(data.partition(b"\0")[0])
