"""Shared by the checks of PCIe links."""

from collections import Counter
from collections.abc import Callable, Sequence

from kdoctor.commands.shell import quoted
from kdoctor.facts import Gpu, PciDevice, PciDevices, Unavailable, link_generation
from kdoctor.records import record
from kdoctor_checks.topology._nvlinks import is_card


def read_links(found: Sequence[Gpu], fields: str = "LnkCap:|LnkSta:") -> tuple[str, ...]:
    """The commands that print the links of these GPUs, and whether they are idle."""
    only = found[0].bus_id if len(found) == 1 else None
    where = f"-s {quoted(only)}" if only else "-d 10de:"
    return f"sudo lspci -vv {where} | grep -E '{'' if only else 'NVIDIA|'}{fields}'", "nvidia-smi -q -d PERFORMANCE"


def passed_through(gpu: Gpu) -> bool:
    """Whether the GPU is passed through to this virtual machine, so that its link belongs to the host."""
    return gpu.virtualization_mode == "passthrough"


def reseat(found: Sequence[Gpu]) -> str:
    """What to do about the links of these GPUs, in the words for a card, a module of a board, or a virtual machine."""
    if any(map(passed_through, found)):
        return "tell the owner of the host, to whom the link belongs"
    known = [gpu for gpu in found if gpu.name]
    return "reseat the GPU or replace the riser" if not known or any(map(is_card, known)) else "have the board serviced"


def of_most(gpu: Gpu, gpus: Sequence[Gpu], read: Callable[[Gpu], int | None]) -> int | None:
    """The value that most of the GPUs of this model have; None if there is no majority."""
    values = Counter(read(other) for other in gpus if other.name == gpu.name)
    value, count = values.most_common(1)[0] if values else (None, 0)
    return value if 2 * count > values.total() else None


@record
class BusLink:
    """The link of a GPU as the PCI bus shows it, without the driver."""

    device: PciDevice
    width: int
    width_max: int
    """Lanes of the GPU, and of the port above if it was read."""
    generation: int | None
    generation_max: int | None
    port_read: bool

    @property
    def subject(self) -> str:
        """The GPU's name in reports."""
        return f"GPU at {self.device.bus_id}"

    @property
    def observed(self) -> str:
        """``PCIe x1 of x16, generation 2 of 3``."""
        slot = "" if self.port_read else " (the port above was not read)"
        generation = f"generation {self.generation or '?'} of {self.generation_max or '?'}"
        return f"PCIe x{self.width} of x{self.width_max}, {generation}{slot}"


def bus_links(pci: PciDevices | Unavailable) -> list[BusLink]:
    """The links of the GPUs on the bus."""
    devices = pci.gpus if isinstance(pci, PciDevices) else ()
    return [link for device in devices if (link := _bus_link(device))]


def _bus_link(device: PciDevice) -> BusLink | None:
    port = device.path[-1] if device.path else None
    if not device.link_width or not device.link_width_max:
        return None
    generations = [link_generation(device.link_speed_max), link_generation(port.link_speed_max if port else None)]
    return BusLink(
        device=device,
        width=device.link_width,
        width_max=min(device.link_width_max, (port and port.link_width_max) or device.link_width_max),
        generation=link_generation(device.link_speed),
        generation_max=min((number for number in generations if number), default=None),
        port_read=bool(port and port.link_width_max),
    )
