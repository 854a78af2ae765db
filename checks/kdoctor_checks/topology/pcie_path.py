from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Gpus, PciDevice, PciDevices, PciFunction, Unavailable, link_generation
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor.records import record
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, RESPONDING, absent, lost_addresses


@record
class _Link:
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


def _links_above(device: PciDevice) -> Sequence[_Link]:
    """The links between the bridges above a device, from the root port down, without the device's link.

    The path is a root port, then an upstream and a downstream port for each switch. The two ports of a switch have no
    link between them.
    """
    path = device.path or ()
    return tuple(_Link(upper=path[place], lower=path[place + 1]) for place in range(0, len(path) - 1, 2))


def _least(first: int | None, second: int | None) -> int | None:
    return min(first, second) if first is not None and second is not None else None


@check("topology.pcie-path", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def pcie_path(pci: PciDevices, gpus: Gpus | Unavailable, *, least_share: float = 1.0) -> Iterator[Outcome]:
    """PCIe links above the GPUs' switches run at full width and speed.

    Why: the GPUs below a PCIe switch share the link above it. If it is narrow or slow, all of them are slow, although
    the link of each GPU looks fine. topology.pcie-width and topology.pcie-generation check the GPU's own link. Ports
    without a GPU below are ignored.
    Remedy: restart once. Then check risers and cables, and the firmware settings of the slot.
    Sources:
        https://docs.kernel.org/PCI/sysfs-pci.html
        https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci
    """
    if excuse := absent(gpus, pci):
        yield excuse
        return
    below: dict[str, tuple[_Link, list[str]]] = {}
    for device in pci.gpus:
        if device.path is None:
            yield Unjudged(subject=f"GPU at {device.bus_id}", reason="the path to its root port was not read")
            continue
        for link in _links_above(device):
            below.setdefault(link.subject, (link, []))[1].append(device.bus_id)
    gone = lost_addresses(gpus, pci) if isinstance(gpus, Gpus) else frozenset[str]()
    for link, addresses in below.values():
        yield _judge(link, addresses, least_share, explained_by=(RESPONDING,) if gone >= set(addresses) else ())
    if not below:
        yield NotApplicable(reason="no visible PCIe switch above the GPUs")


def _judge(link: _Link, gpus: list[str], least_share: float, explained_by: tuple[str, ...]) -> Outcome:
    width, widest, generation, fastest = link.width, link.width_max, link.generation, link.generation_max
    if width is None or widest is None or generation is None or fastest is None:
        reason = f"the link was not read: {link.describe().replace('None', '?')}"
        return Unjudged(subject=link.subject, reason=reason, explained_by=explained_by)
    if width >= least_share * widest and generation >= fastest:
        return Evidence(subject=link.subject, observed=link.describe())
    return Finding(
        subject=link.subject,
        observed=f"{link.describe()}, above the {'GPU' if len(gpus) == 1 else 'GPUs'} at {', '.join(gpus)}",
        brief=f"the link above {counted(len(gpus), 'GPU')} is {'narrow' if width < least_share * widest else 'slow'}",
        expected=f"x{widest}, generation {fastest}",
        explained_by=explained_by,
        remedy=Remedy.inspect(
            "Restart once. Then check risers and cables, and the firmware settings of the slot.",
            f"sudo lspci -vv -s {quoted(link.lower.bus_id)} | grep -E 'LnkCap:|LnkSta:'",
            "sudo lspci -tv",
        ),
    )
