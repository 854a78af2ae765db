"""Finds the dumps in a file by their content. A file may hold several."""

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from kdoctor.errors import UsageError, about_missing_file
from kdoctor.inputs import refuse_special
from kdoctor.probes.kernel_lines import is_kernels
from kdoctor_recordings.formats import (
    diagnostics,
    lspci,
    messages,
    smi_csv,
    smi_failure,
    smi_query,
    smi_table,
    smi_topo,
    smi_xml,
)
from kdoctor_recordings.formats.part import Kind, Section
from kdoctor_recordings.formats.pasted import BEGINNINGS, FENCE, LONGEST_LINE, MATRIX, XML, as_csv, plain, unquote

UNDERSTOOD = (
    "nvidia-smi (the table, -q, -q -x, -L, topo -m, topo -p2p, nvlink -s and -e, --query-gpu as CSV), lspci -vvv, "
    "a kernel log (dmesg, journalctl, syslog, pstore), the fabric manager's log, dcgmi diag, "
    "/proc/driver/nvidia/version, lsmod, and folders or archives of these"
)
_SUPPORTED = f"Supported formats: {UNDERSTOOD}. kdoctor diagnose reads the log of a job."
_MOST_BYTES = 128 * 1024**2
_FEW = 8
_ZEROS = 0.9
"""The share of zeros in UTF-16."""
_XML_KIND: Kind = "nvidia-smi -q -x"
_MATRIX_ROW = re.compile(r"\s*GPU\d+\s")
_ACCESS = frozenset({"OK", "CNS", "GNS", "TNS", "DR", "NS"})
_LEVEL = re.compile(r"PIX|PXB|PHB|NODE|SYS|SOC|NV\d+")
_COMMAND = re.compile(
    r"(?:# \$ |[\w.@~:/-]*[$#] ?|\+ |(?=nvidia-smi (?:--?[\w.,=-]+ ?)+$))"
    r"(?P<command>(?:sudo )?(?:/[\w./-]*/)?"
    r"(?:nvidia-smi|lspci|lsmod|dmesg|journalctl|dcgmi|cat)\b.*)"
)
_NOT_TEXT = (b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff", b"BZh", b"\xfd7zXZ", b"PK\x03\x04")
_JSON_LINES = 400
_DMESG = re.compile(r'"dmesg"\s*:\s*\[')
_RULE = re.compile(r"[#_*-]{20,}\s*")
_NOT_READ = {
    r"^\s*(?:CA 'mlx|Infiniband device ')": "ports of InfiniBand, which say nothing about GPUs",
    r"\s*<\?xml": "XML, but not from nvidia-smi -q -x",
    r"^\s*[-+|\\]+\[\w{4}:\w\w\]": "the tree of lspci -t, without links; use lspci -vvv",
    r"^#\s*gpu\s+(?:pwr|pid|sm|mem)\b": "samples without limits to judge by; use nvidia-smi -q",
    r"PK\x03\x04": "an archive; unpack it and import the folder",
    r"^ {4,}[A-Z][^:\n]*\n {8,}[A-Z][^:\n]* {2,}: \S": (
        "a part of nvidia-smi -q without a value to judge by; record all of it"
    ),
}
"""Words of other formats, and what is said of them."""

_ONCE: frozenset[Kind] = frozenset(
    {"nvidia-smi", "nvidia-smi -q -x", "nvidia-smi topo -m", "nvidia-smi topo -p2p", "/proc/driver/nvidia/version"}
)
"""Kinds whose first line occurs once in a dump. Where it occurs again, another dump begins."""


def read_sections(path: Path) -> tuple[Section, ...]:
    """The dumps of a file.

    Raises:
        UsageError: it cannot be read, or nothing in it is supported.
    """
    text = _read(path)
    sections = find_sections(path.name, text)
    if not sections:
        known = (what for words, what in _NOT_READ.items() if re.search(words, text[:4096], re.MULTILINE))
        unsupported = next(known, "not a known format")
        raise UsageError(f"{path}: {unsupported if text.strip() else 'empty'}", hint=_SUPPORTED)
    return sections


def find_sections(name: str, text: str) -> tuple[Section, ...]:
    """The dumps in a text."""
    lines = list(as_csv(unquote(plain(text).split("\n"))))
    whole = lines[-1] == ""
    if whole:
        lines.pop()
    found = _Splitter(name, lines, whole=whole).sections()
    said = messages.telling_lines(lines)
    others = () if found else tuple(enumerate(lines, start=1))
    words = Section(kind="this text", file=name, lines=said, whole=True, ended=True, skipped=others)
    return (*found, words) if said else found


def is_log_alone(start: bytes) -> bool:
    """Whether the start of a file is a kernel log in UTF-8, and nothing else."""
    if start.startswith(_NOT_TEXT) or b"\0" in start:
        return False
    lines = start.decode("utf-8", "replace").split("\n")
    sections = _Splitter("", lines, whole=False).sections()
    return [section.kind for section in sections] == ["kernel log"]


def _read(path: Path) -> str:
    refuse_special(path)
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
            if data.startswith(b"\x1f\x8b"):
                # nvidia-bug-report.sh and log rotation write such files.
                data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(_MOST_BYTES + 1)
            elif data.startswith((b"BZh", b"\xfd7zXZ")):
                data = (bz2 if data.startswith(b"B") else lzma).open(io.BytesIO(data)).read(_MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise UsageError(f"{path}: damaged compressed data: {error}") from error
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file{about_missing_file(path)}") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{path}: larger than {_MOST_BYTES >> 20} MiB, the limit for a dump")
    return decode(data)


def decode(data: bytes) -> str:
    """The text. PowerShell writes UTF-16 when output is redirected to a file, and some tools cut off its mark."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    start = data[:200]
    for codec, zeros in (("utf-16-le", start[1::2]), ("utf-16-be", start[::2])):
        if len(zeros) > _FEW and zeros.count(0) > _ZEROS * len(zeros):
            return data.decode(codec, "replace")
    return data.decode("utf-8-sig", "replace").replace("\x00", "")


@dataclass(kw_only=True)
class _Open:
    kind: Kind
    command: str | None
    first: int
    lines: list[str] = field(default_factory=list)
    has_end: bool = False
    """Whether it is XML with its closing tag."""

    def add(self, line: str) -> None:
        """Append a line."""
        self.lines.append(line)
        self.has_end = self.has_end or (self.kind == _XML_KIND and smi_xml.END in line)


class _Splitter:
    """Goes through the lines. Each line that begins a dump ends the previous one."""

    def __init__(self, file: str, lines: list[str], *, whole: bool) -> None:
        self._file = file
        self._lines = lines
        self._whole = whole
        self._open: _Open | None = None
        self._command: str | None = None
        self._skipped: list[tuple[int, str]] = []
        self._before: list[tuple[int, str]] = []
        """Lines before the first dump. If that is a kernel log, they belong to it."""

    def sections(self) -> tuple[Section, ...]:
        """The dumps, in the order of the file. Unknown lines after the last one belong to it."""
        found = list(self._sections())
        left = (*self._skipped, *self._before)
        if found and left:
            found[-1] = replace(found[-1], skipped=(*found[-1].skipped, *left))
        return tuple(found)

    def _sections(self) -> Iterator[Section]:
        for place, line in enumerate(self._lines):
            command = _COMMAND.match(line)
            if command or _RULE.fullmatch(line) or FENCE.fullmatch(line):
                yield from self._close(last=False)
                self._command = command["command"].strip() if command else self._command
                self._skip_before()
                continue
            kind = self._begins(line, place)
            if kind:
                yield from self._close(last=False)
                before = [text for _, text in self._before] if kind == "kernel log" else []
                if before:
                    self._before.clear()
                self._skip_before()
                self._open = _Open(kind=kind, command=self._command, first=place + 1 - len(before), lines=before)
            if self._open:
                is_message = self._open.kind == "nvidia-smi -q" and messages.begins(line)
                self._open.add("" if is_message else line)
            else:
                self._before.append((place + 1, line))
        yield from self._close(last=True)

    def _skip_before(self) -> None:
        """Keep the lines before a dump as unknown."""
        self._skipped += self._before
        self._before.clear()

    def _close(self, *, last: bool) -> Iterator[Section]:
        opened, self._open = self._open, None
        if opened:
            lines = tuple(opened.lines)
            if opened.kind != _XML_KIND:
                lines = tuple(line if len(line) <= LONGEST_LINE else "" for line in lines)
            yield Section(
                kind=opened.kind,
                file=self._file,
                lines=lines,
                whole=not last or self._whole,
                ended=not last or (self._whole and not lines[-1].strip()),
                command=opened.command,
                first=opened.first,
                skipped=tuple(self._skipped),
            )
            self._skipped = []

    def _begins(self, line: str, place: int) -> Kind | None:
        """The kind of the dump that this line begins; None if it belongs to the open one."""
        if len(line) > LONGEST_LINE and not XML.match(line):
            return None
        current = self._open.kind if self._open else None
        kind = self._kind(line, place, current)
        if current in {"nvidia-smi -q", "nvidia-smi"} and smi_failure.is_about_gpu(line):
            return None  # one of the GPUs of the open dump
        # Except for the kinds in _ONCE, each line or block begins as the dump does.
        is_new = kind != current or kind in _ONCE or (kind == "nvidia-smi -q" and "NVSMI LOG" in line)
        return kind if is_new else None

    def _kind(self, line: str, place: int, current: Kind | None) -> Kind | None:
        if self._open and current == _XML_KIND and not self._open.has_end:
            return None
        is_xml_part = current is None and smi_xml.begins_part(line)
        if is_xml_part or XML.match(line):
            found_root = any("nvidia_smi_log" in one for one in self._lines[place : place + 3])
            return _XML_KIND if is_xml_part or found_root else None
        if current is None and line.lstrip().startswith("{"):
            return self._json_kind(place)
        if line[:1] in {" ", "\t", "G"} and "GPU" in line[:60] and MATRIX.match(line):
            return self._matrix(place)
        is_lspci = current is None and lspci.begins_part(line)
        is_matrix = current is None and smi_topo.begins_part(line)
        is_open = current is None or (current == "nvidia-smi -q" and smi_query.is_numbered(line))
        is_part = is_open and smi_query.begins_part(line, self._lines[place + 1 : place + 7])
        is_row = current != "nvidia-smi" and (smi_table.BEGINS.match(line) or smi_table.PROCESSES.match(line))
        found: Kind | None = (
            "lspci -vvv" if is_lspci else "nvidia-smi -q" if is_part else "nvidia-smi" if is_row else None
        )
        found = "nvidia-smi topo -m" if is_matrix else found
        if not found and (line[:1].strip() or smi_failure.is_about_gpu(line)):
            found = next((kind for kind, begins in BEGINNINGS if begins(line)), None)
            found = found or ("nvidia-smi --query-gpu" if self._is_csv(line, current) else None)
        if current == "dcgmi diag" and line.lstrip().startswith(('"', "{")):
            return None  # a message that quotes the log
        return found or ("kernel log" if is_kernels(line) else None)

    def _is_csv(self, line: str, current: Kind | None) -> bool:
        """Whether the line is the header of a table of ``--query-gpu``, or its first row."""
        if smi_csv.is_other_query(self._command or "") or line.startswith("#"):
            return False
        if current is not None:
            return smi_csv.begins(line)
        return smi_csv.begins(line) or smi_csv.is_row(line) or smi_csv.is_query(self._command or "")

    def _json_kind(self, place: int) -> Kind | None:
        """The kind of a JSON document, by its first names."""
        start = "\n".join(self._lines[place : place + _JSON_LINES])
        if diagnostics.IS_DCGM.search(start):
            return "dcgmi diag"
        if _DMESG.search(start):
            return "kernel log"
        return "kernel log" if is_kernels(self._lines[place]) else None

    def _matrix(self, place: int) -> Kind | None:
        """The kind of matrix, by the cells of its first rows or by its header."""
        rows = [line for line in self._lines[place + 1 : place + 3] if _MATRIX_ROW.match(line)]
        cells = " ".join(rows).split()
        if not _ACCESS.isdisjoint(cells):
            return "nvidia-smi topo -p2p"
        is_levels = any(map(_LEVEL.fullmatch, cells)) or (rows and "Affinity" in self._lines[place])
        return "nvidia-smi topo -m" if is_levels else None
