"""Reads ``lsmod`` and ``/proc/modules``, also what a search for names left of them."""

import re

from kdoctor.facts import FactGroup, Kernel, KernelDriver
from kdoctor_recordings.formats.part import Part, Section

_HEAD = re.compile(r"Module +Size +Used by\s*")
_ROW = re.compile(r"(?P<name>\w{1,60})\s+\d{3,10}\s+-?\d{1,4}(?:\s+[\w,-]+)?(?:\s+\w+ 0x[0-9a-f]+.*)?\s*")
_OURS = re.compile(r"(?:nvidia(?:_\w+)?|nouveau)\s")


def begins(line: str) -> bool:
    """Whether the line is the header, or the row of a module for NVIDIA's GPUs."""
    return bool(_HEAD.fullmatch(line) or (_OURS.match(line) and _ROW.fullmatch(line)))


def parse(section: Section) -> Part:
    """The modules that are loaded for NVIDIA's GPUs. Only a list with its header and its end shows that none is."""
    rows = [found["name"] for line in section.lines if (found := _ROW.fullmatch(line))]
    ours = tuple(sorted({name for name in rows if _OURS.match(f"{name} ")}))
    is_whole = section.whole and bool(_HEAD.fullmatch(section.lines[0]))
    groups: list[FactGroup] = [Kernel(modules=ours)] if ours or is_whole else []
    groups += [KernelDriver(loaded="nvidia" in ours, nodes=None)] if "nvidia" in ours or is_whole else []
    return section.part(groups=tuple(groups))
