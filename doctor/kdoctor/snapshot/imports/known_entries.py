"""Entries of ``nvidia-smi -q`` that kdoctor knows and does not read, and those that it does not know.

Driver releases add entries. One that is not listed here may report a fault, so it is shown as not understood.
Source: https://docs.nvidia.com/deploy/nvidia-smi/ and recorded output of drivers 460 to 610.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

_HEADINGS = (
    r"accounted processes|applications clocks|bar1 memory usage|c2c mode|capabilities"
    r"|(cc|conf compute) protected memory usage|clock policy|clocks( (event|throttle) reasons counters)?"
    r"|default applications clocks|deferred clocks"
    r"|dram encryption mode|driver model|edpp multiplier|encoder stats|fb memory usage|fbc stats|gpu c2c mode"
    r"|gpu memory power readings|gpu operation mode|gpu power readings|gpu virtualization mode|ibmnpu"
    r"|inforom (bbx( object)? flush|time data|version)|max clocks|max customer boost clocks|mig devices?|mig mode"
    r"|module power readings|pci|platform ?info|power profiles|power readings|power smoothing|samples|processes"
    r"|supported clocks|supported gpu target temp|temperature|utilization|vgpu device capability|vgpu driver capability"
    r"|voltage|workload power profiles|.* samples"
)
"""Headings of settings and measurements. What is below them and not read is not about the GPU's health."""
_ENTRIES = (
    r"accounting mode( buffer size)?|addressing mode|board id|(board|gpu|fru|gpu fru) part number|display (mode|active"
    r"|attached)|gpu module id|module id|(gpu )?pdi|gsp firmware version|multigpu board|minor number|serial( number)?"
    r"|product brand|sparse operation mode|vbios version|hostname|gom|timestamp"
    r"|ecc errors/(volatile|aggregate)/((single|double) bit/.*|[sd]ram (un)?correctable.*)"
    r"|ecc errors/aggregate uncorrectable sram sources/.*"
    r"|fabric/(cliqueid|clusteruuid|health/partition assigned)"
    r"|remapped rows/(inactive (un)?correctable error|(bank remap availability|row remapper) histogram(/.*)?)"
    r"|retired pages/.*(pagelist|pending|addresses?|timestamp).*"
    r"|clocks (event|throttle) reasons/.*(idle|applications clocks|unknown)( setting)?"
)
_KNOWN = re.compile(rf"(?:{_HEADINGS})(?:/.*)?|{_ENTRIES}", re.IGNORECASE)
_EMPTY = frozenset({"", "n/a", "none", "not supported"})
"""Values that report nothing."""


def is_heading(text: str) -> bool:
    """Whether this is the name of a heading that kdoctor knows."""
    return bool(_KNOWN.fullmatch(text.strip()))


def not_understood(entries: Mapping[str, str], read: Collection[str]) -> Iterator[str]:
    """The entries that kdoctor does not know, with their values.

    Args:
        entries: path to text.
        read: the paths that are read.
    """
    for path, text in entries.items():
        if path not in read and text.strip().lower() not in _EMPTY and not _KNOWN.fullmatch(path):
            yield f"{path}: {text}"
