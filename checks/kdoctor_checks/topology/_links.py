"""Shared by checks of PCIe links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kdoctor.facts import PciDevice, PciFunction, link_generation


@dataclass(frozen=True, kw_only=True)
class Link:
    """A PCIe link above a GPU, with the port above it and the function below it."""

    upper: PciFunction
    lower: PciFunction

    @property
    def subject(self) -> str:
        """The link's name in reports."""
        return f"PCI {self.upper.bus_id} - {self.lower.bus_id}"

    @property
    def width(self) -> int | None:
        """Lanes in use."""
        return self.lower.link_width or self.upper.link_width

    @property
    def width_max(self) -> int | None:
        """Lanes that both ends support; None if one end is unknown."""
        return _least(self.upper.link_width_max, self.lower.link_width_max)

    @property
    def generation(self) -> int | None:
        """Generation in use."""
        return link_generation(self.lower.link_speed) or link_generation(self.upper.link_speed)

    @property
    def generation_max(self) -> int | None:
        """Generation that both ends support; None if one end is unknown."""
        return _least(link_generation(self.upper.link_speed_max), link_generation(self.lower.link_speed_max))

    def describe(self) -> str:
        """Width and generation, each with its maximum."""
        return f"x{self.width} of x{self.width_max}, generation {self.generation} of {self.generation_max}"


def links_above(device: PciDevice) -> Sequence[Link]:
    """The links between the bridges above a device, from the root port down, without the device's link.

    The path is a root port, then an upstream and a downstream port for each switch. There is no link between the two
    ports of a switch.
    """
    path = device.path or ()
    return tuple(Link(upper=path[place], lower=path[place + 1]) for place in range(0, len(path) - 1, 2))


def _least(first: int | None, second: int | None) -> int | None:
    return min(first, second) if first is not None and second is not None else None
