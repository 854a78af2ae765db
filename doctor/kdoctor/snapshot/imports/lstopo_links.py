"""NVLinks and PCIe distances of pairs of GPUs in hwloc's XML.

hwloc writes the bandwidth of all NVLinks between two objects in MB/s, as ``distances2`` or ``distances2hetero`` with
the name ``NVLinkBandwidth``. An NVSwitch is a PCI device among these objects, a POWER processor a package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from kdoctor.facts import PciDevice
from kdoctor.snapshot.imports.part import PairPart

_SELF = 1_000_000
"""hwloc's value for an object with itself."""
_UNITS = (25_000, 20_000)
"""MB/s of an NVLink in one direction: from the second generation on, and in the first."""
_MOST_LINKS = 18
_FAST_UNIT = 50_000
"""The fifth generation, known by totals that would be more than 18 slower links."""


@dataclass(kw_only=True)
class Bandwidths:
    """The matrix as it is read."""

    names: list[str] = field(default_factory=list)
    """hwloc's indices of the objects: ``332``."""
    values: list[int] = field(default_factory=list)

    def add(self, element: str, text: str) -> None:
        """The text of an element of the matrix."""
        if element == "indexes":
            self.names += [word.rpartition(":")[2] for word in text.split()]
        elif element == "u64values":
            self.values += [int(word) for word in text.split() if re.fullmatch(r"[0-9]{1,18}", word)]

    def links(self, gpus: Mapping[int, str]) -> dict[tuple[int, int], int]:
        """The number of NVLinks of each pair; empty if the matrix is incomplete.

        Args:
            gpus: NVML's index to hwloc's index.
        """
        size = len(self.names)
        places = {index: self.names.index(name) for index, name in gpus.items() if name in self.names}
        if len(self.values) != size * size or len(places) < len(gpus):
            return {}
        rows = [self.values[place * size : (place + 1) * size] for place in range(size)]
        others = [place for place in range(size) if place not in places.values()]
        found: dict[tuple[int, int], int] = {}
        for (one, first), (two, second) in combinations(sorted(places.items()), 2):
            shared = any(rows[first][other] and rows[second][other] for other in others)
            totals = [sum(rows[place][other] for other in others) for place in (first, second)]
            speed = rows[first][second] or (min(totals) if shared and len(others) >= len(gpus) // 2 else 0)
            count = _count(speed % _SELF)
            if count is not None:
                found[one, two] = count
        return found


def _count(speed: int) -> int | None:
    """The number of links with this total; None if it fits no generation."""
    unit = next((unit for unit in _UNITS if speed % unit == 0), None)
    if unit is None:
        return None
    count = speed // unit
    return speed // _FAST_UNIT if count > _MOST_LINKS and speed % _FAST_UNIT == 0 else count


def pairs(links: Mapping[tuple[int, int], int], devices: Mapping[int, PciDevice]) -> dict[tuple[int, int], PairPart]:
    """The pairs of GPUs, with what is known about each.

    Args:
        links: the number of NVLinks by pair.
        devices: NVML's index to the PCI device.
    """
    found: dict[tuple[int, int], PairPart] = {}
    for one, two in combinations(sorted(devices), 2):
        level = _level(devices[one], devices[two])
        facts = {"level": level} if level else {}
        found[one, two] = PairPart(facts=facts | ({"nvlinks": links[one, two]} if (one, two) in links else {}))
    return found


def _level(one: PciDevice, two: PciDevice) -> str | None:
    """The PCIe distance by the bridges above both, or by their NUMA nodes."""
    first, second = ([bridge.bus_id for bridge in device.path or ()] for device in (one, two))
    common = _common(first, second)
    if common:
        return "PIX" if max(len(first), len(second)) - common <= 1 else "PXB"
    if one.numa_node is None or two.numa_node is None:
        return None
    return "NODE" if one.numa_node == two.numa_node else "SYS"


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """The number of bridges that both have, from the root port on."""
    same = [one == two for one, two in zip(first, second, strict=False)]
    return same.index(False) if False in same else len(same)
