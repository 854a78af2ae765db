"""Entries of ``nvidia-smi -q`` that kdoctor knows and does not read, and those that it does not know.

Driver releases add entries. One that is not listed here may report a fault, so it is shown as not understood.
Source: https://docs.nvidia.com/deploy/nvidia-smi/ and recorded output of drivers 460 to 610.
"""

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
_ENTRY = re.compile(_ENTRIES, re.IGNORECASE)
_KNOWN = re.compile(rf"(?:{_HEADINGS})(?:/.*)?|{_ENTRIES}", re.IGNORECASE)
_EMPTY = frozenset({"", "n/a", "none", "not supported"})
"""Values that report nothing."""
_WELL = frozenset({"0", "no", "false", "disabled", "not active", "healthy", "success"})
_FAULT = re.compile(r"fail|error|fault|unhealthy|degrad|corrupt|\blost\b|damage|err!|requires? reset", re.IGNORECASE)
"""Words of a fault. An entry that has one is not known, whatever heading it is below."""
PROCESS = frozenset(
    {"process id", "type", "name", "used gpu memory", "gpu instance id", "compute instance id", "protected"}
)
"""The entries of a process."""


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
        value = text.strip().lower()
        if path in read or value in _EMPTY:
            continue
        if not _KNOWN.fullmatch(path) or _may_be_fault(path, value):
            yield f"{path}: {text}"


def _may_be_fault(path: str, value: str) -> bool:
    """Whether a known entry, or one below a known heading, reports what may be a fault."""
    if _FAULT.search(value):
        return True
    return value not in _WELL and not _ENTRY.fullmatch(path) and bool(_FAULT.search(path.rpartition("/")[2]))
