"""Reads ``nvidia-smi -q``."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from kdoctor_recordings.formats import smi_failure, smi_nvlink, values
from kdoctor_recordings.formats.gpu_fields import PROCESS, READ, is_heading, not_understood, read_gpu
from kdoctor_recordings.formats.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor_recordings.formats.unindented import HEADINGS, SEGMENTS, Headings, headings_below, headings_of
from kdoctor_recordings.formats.values import WITHOUT_VALUE, read_all, read_or_none

_GPU = re.compile(r"GPU (?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*")
_NUMBERED = re.compile(r"[\s=#*-]*GPU ?(?P<index>\d{1,2})(?::.*)?[\s=*-]*")
"""What people and loops write above the part of each GPU, such as its line of ``nvidia-smi -L``."""
_ENTRY = re.compile(r"(?P<indent>[ \t]*)(?P<name>[^:\s][^:]*?)\s*(?: : ?(?P<value>.*))?")
_COLON = re.compile(r"(?<=\S):(?: (?=\S)|\s*$)")
_BEHIND = re.compile(r"\s{2,}\S.*|\s+[(#!*].*")
"""What people write behind a value."""
_FRAME = re.compile(r"[\s+|=-]*|=+NVSMI LOG=+\s*|\w{3} \w{3}\s+\d+ [\d:]{8} \d{4}\s*")
"""Empty lines, borders of tables, and the time above a table."""
_WARNING = re.compile(r"(?!.*infoROM)(?i:warning|error|fatal)\b[: ]")
"""How a message of nvidia-smi itself begins, other than those that are read."""
DRIVER: values.Fields = {
    "driver_version": (values.version, ("driver version",)),
    "cuda_driver_version": (values.version, ("cuda umd version", "cuda version", "cuda driver version")),
    "count": (values.count, ("attached gpus",)),
}
"""Driver 610 deprecates the name "CUDA Version". The last one is nvitop's."""
HEAD = {"kmd version", *(name for _, names in DRIVER.values() for name in names)}
_CERTAIN = WITHOUT_VALUE | {"not active"}
"""Values that only this output has for such names."""
_ALIKE = ("clocks throttle reasons", "clocks event reasons/")
"""Headings whose entries are the same below "clocks event reasons", as some drivers print them."""
_INDENT = 4
"""Columns of a tab."""


def begins_part(line: str, below: Sequence[str]) -> bool:
    """Whether a part of the output that names no GPU begins here: with a heading, or below one that is missing."""
    lines = _spaced(below if is_numbered(line) else (line, *below))
    found = _ENTRY.fullmatch(lines[0]) if lines else None
    above = _missing(lines) if found and _name(found) in SEGMENTS else None
    if above is None:
        return False
    entries = [(path, text) for path, text, _ in _entries(lines, above) if path in READ]
    # A single entry of another program may have the name of one of these, and no value that it can have.
    parts = (dict(entries), *({path: text} for path, text in entries))
    certain = any(text.lower() in _CERTAIN for _, text in entries)
    return certain or any(read_gpu(None, part, (), cut=True).facts for part in parts)


def is_numbered(line: str) -> bool:
    """Whether the line is the number of the GPU of which the lines below it are a part of the output."""
    return bool(_NUMBERED.fullmatch(line))


def _spaced(lines: Sequence[str]) -> Sequence[str]:
    """The lines with a space before each colon, which tools that reformat the output drop; headings without a colon.

    Lines that grep writes between its matches are left out.
    """
    lines = [line for line in lines if line.strip() != "--"]
    if any(" : " in line for line in lines):
        return lines
    return [_COLON.sub(lambda found: " : " if found[0] == ": " else "", line, count=1) for line in lines]


def _missing(lines: Sequence[str]) -> Headings | None:
    """The headings above the first line, under which most lines become facts.

    None if no line does, or if the lines may belong to several headings.
    """
    found: dict[tuple[str, ...], Headings] = {}
    for above in ((), *(tuple(path.split("/")) for path in sorted(HEADINGS) if not path.startswith(_ALIKE))):
        found.setdefault(tuple(path for path, _, _ in _entries(lines, above) if path in READ), above)
    most = max(map(len, found))
    best = [above for paths, above in found.items() if len(paths) == most]
    return best[0] if most and (len(best) == 1 or not best[0]) else None


def parse(section: Section) -> Part:
    """The driver and the GPUs of the output. A last line without line end may be incomplete, and is ignored."""
    lines = _spaced(section.lines if section.whole else section.lines[:-1])
    # A GPU that does not answer has only the first line of a block.
    starts = [place for place, line in enumerate(lines) if _GPU.fullmatch(line) or smi_failure.LOST.match(line)]
    places = [*starts, len(lines)]
    if not starts and (gpus := tuple(_unnamed(lines))):
        return section.part(gpus=gpus)
    head = {name: text for name, text, _ in _entries(lines[: places[0]])}
    driver, errors = read_all(DRIVER, head)
    parts = [_gpu(lines[start:end], section, last=end == len(lines)) for start, end in pairwise(places)]
    return section.part(
        driver=driver,
        driver_errors=errors,
        gpus=(*with_indices(parts, driver.get("count")), *smi_failure.damaged(lines)),
        kernel_version=kernel_version(head),
        not_understood=(*not_understood(head, HEAD), *_unknown_lines(lines)),
    )


def _unnamed(lines: Sequence[str]) -> Iterator[GpuPart]:
    """The GPUs of a part without addresses: each below its number, or where an entry is there again."""
    numbered = [place for place, line in enumerate(lines) if is_numbered(line)]
    for start, end in pairwise(sorted({0, *numbered, len(lines)})):
        found, listed = (pattern.fullmatch(lines[start]) for pattern in (_NUMBERED, smi_nvlink.GPU))
        own = lines[start + bool(found) : end]
        if (above := _missing(own)) is None:
            continue
        gpus: list[dict[str, str]] = [{}]
        for path, text, _ in _entries(own, above):
            if path in SEGMENTS and path not in READ:
                continue  # its heading is missing
            gpus += [{}] if path in gpus[-1] else []  # grep prints the same part of several GPUs
            gpus[-1][path] = text
        names = {"product name": listed["name"] or listed["alone"], "gpu uuid": listed["uuid"] or ""} if listed else {}
        for entries in gpus:
            index = int(found["index"]) if found and len(gpus) == 1 else None
            yield replace(read_gpu(None, {**names, **entries}, (), cut=True), index=index)


def _unknown_lines(lines: Sequence[str]) -> Iterator[str]:
    """Warnings, and the headings that are not known and have no entries below them. The last ones may be cut off."""
    for line, following in pairwise([*(line for line in lines if line.strip()), ""]):
        found = _ENTRY.fullmatch(line)
        is_empty = found and found["indent"] and found["value"] is None and not _is_known(found)
        if (is_empty and following and _indent(following) <= _indent(line)) or _WARNING.match(line):
            yield line.strip()


def prose(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The numbered lines outside the output, whose entries have a value and whose headings are indented."""
    for number, line in lines:
        found = _ENTRY.fullmatch(line)
        is_part = line[:1].isspace() or (found and (found["value"] is not None or _is_known(found)))
        if not (is_part or is_numbered(line) or _GPU.fullmatch(line) or _FRAME.fullmatch(line) or _WARNING.match(line)):
            yield number, line


def _is_known(found: re.Match[str]) -> bool:
    return _name(found) in SEGMENTS or is_heading(found[0]) or bool(_FRAME.fullmatch(found[0]))


def _indent(line: str) -> int:
    wide = line.expandtabs(_INDENT)
    return len(wide) - len(wide.lstrip())


def kernel_version(head: Mapping[str, str]) -> str | None:
    """The version of the kernel module, which driver 610 and later report."""
    version: str | None = read_or_none(values.version, head.get("kmd version", ""))
    return version


def with_indices(parts: Sequence[GpuPart], count: object) -> tuple[GpuPart, ...]:
    """The GPUs with their places as indices, if all attached ones are listed.

    Output for selected GPUs (``-i``) has the number of all attached GPUs, as does one that was cut off.
    """
    if len(parts) != count:
        return tuple(parts)
    return tuple(replace(part, index=index) for index, part in enumerate(parts))


def _gpu(lines: Sequence[str], section: Section, *, last: bool) -> GpuPart:
    found = _GPU.fullmatch(lines[0])
    if not found:
        return smi_failure.lost(lines[0]) or GpuPart()
    entries: dict[str, str] = {}
    processes: list[dict[str, str]] = []
    path = ""
    for path, text, is_process in _entries(lines[1:]):
        name = path.rpartition("/")[2]
        if not is_process:
            entries.setdefault(path, text)
            continue
        if name == "process id":
            processes.append({})
        if processes:
            processes[-1].setdefault(name, text)
        if name not in PROCESS:
            entries.setdefault(path, text)
    # The processes, and in newer drivers a few more lines, end the block of a GPU.
    cut = last and (not section.whole or (not section.ended and "processes" not in entries))
    more = last and path.startswith("processes") and not section.ended
    return read_gpu(sysfs_bus_id(found["address"]), entries, processes, cut=cut, more=more)


def _entries(lines: Sequence[str], above: Headings = ()) -> Iterator[tuple[str, str, bool]]:
    """Path, text, and whether it belongs to a process. The heading of the processes counts too, with an empty text."""
    for headings, name, value in (_flat if _is_flat(lines) else _indented)(lines, above):
        path = "/".join((*headings, name))
        if value is not None or path == "processes":
            yield path, _BEHIND.sub("", (value or "").strip()), path.startswith("processes/")


_Placed = tuple[Headings, str, str | None]
"""The headings above a line, its name, and its value if it is an entry."""


def _indented(lines: Sequence[str], above: Headings) -> Iterator[_Placed]:
    stack: list[tuple[int, str]] = []
    for found in filter(None, map(_ENTRY.fullmatch, lines)):
        indent = _indent(found[0])
        while stack and stack[-1][0] >= indent:
            stack.pop()
        yield (*above, *(name for _, name in stack)), _name(found), found["value"]
        stack.append((indent, _name(found)))


def _flat(lines: Sequence[str], above: Headings) -> Iterator[_Placed]:
    for found in filter(None, map(_ENTRY.fullmatch, lines)):
        name = _name(found)
        if found["value"] is None:
            above = headings_below(above, name)
            yield above[:-1], name, None
        else:
            above = headings_of(above, name)
            yield above, name, found["value"]


def _is_flat(lines: Sequence[str]) -> bool:
    """Whether all entries and a heading of some of them begin in the same column."""
    found = list(filter(None, map(_ENTRY.fullmatch, lines)))
    columns = {_indent(one[0]) for one in found if one["value"] is not None}
    return len(columns) == 1 and any(
        one["value"] is None and _name(one) in SEGMENTS and _indent(one[0]) in columns for one in found
    )


def _name(found: re.Match[str]) -> str:
    """The name in a path."""
    return " ".join(found["name"].lower().replace("-", "").split())
