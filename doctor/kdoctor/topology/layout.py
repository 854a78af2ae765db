"""GPUs and what connects them, from the facts of NVML and of the kernel's PCI tree."""

from collections.abc import Container, Mapping, Sequence
from itertools import combinations

from kdoctor.facts import Gpu, GpuPair, Gpus, PciDevice, PciDevices, link_gbs
from kdoctor.records import record

LEVELS = ("SYS", "NODE", "PHB", "PXB", "PIX", "internal")
"""PCIe distances as in ``nvidia-smi topo -m``, the farthest first."""

_THROUGH_THE_HOST = LEVELS.index("PHB")
"""Without peer access, data goes through host memory, however close the GPUs are."""

_IDLE_FROM = 8
"""P-states from here on are idle. Links may then be narrower."""


@record
class Link:
    """What connects two GPUs."""

    first: int
    second: int
    level: str | None
    """PCIe distance; None if the driver did not report it."""
    nvlinks: int | None
    """NVLinks between them; None if the driver did not report it."""
    blocked: str | None
    """NVML's P2P status if peer access is not possible; None if it is possible or unknown."""
    gbs: float | None
    """Nominal bandwidth of the slowest part in one direction, GB/s, by version and width."""

    @property
    def is_known(self) -> bool:
        """Whether the driver reported what connects the two."""
        return bool(self.nvlinks) or self.level is not None

    @property
    def label(self) -> str:
        """``NV12``, ``PIX``, ..., with an exclamation mark if peer access is blocked; ``?`` if unknown."""
        if self.nvlinks:
            return f"NV{self.nvlinks}"
        return (self.level or "?") + ("!" if self.blocked else "")

    @property
    def quality(self) -> tuple[int, float, int, int]:
        """Greater is better: NVLink before PCIe, then bandwidth, then links or distance, then peer access."""
        if self.nvlinks:
            return (1, self.gbs or 0.0, self.nvlinks, 1)
        near = LEVELS.index(self.level) if self.level in LEVELS else -1
        if self.blocked:
            near = min(near, _THROUGH_THE_HOST)
        return (0, self.gbs or 0.0, near, 0 if self.blocked else 1)


@record
class Place:
    """A GPU and where it is."""

    gpu: Gpu
    device: PciDevice | None
    """Its PCI function, if the kernel's tree was read."""
    numa_node: int | None
    narrow: str | None
    """The width of its PCIe link if it is below the maximum: ``x1 of x16``."""
    lost: bool
    """Whether the driver lost the GPU."""
    failing: bool
    """Whether a check of severity error fails for it."""

    @property
    def in_mig_mode(self) -> bool:
        """Whether the GPU is partitioned with MIG."""
        return bool(self.gpu.mig_mode)


@record
class Layout:
    """All GPUs of a machine and every pair of them."""

    places: tuple[Place, ...]
    """In order of index."""
    links: Mapping[tuple[int, int], Link]
    """By the two indices, the smaller first."""

    @property
    def usable(self) -> tuple[Place, ...]:
        """The GPUs that a job can use."""
        return tuple(place for place in self.places if not place.lost)

    def candidates(self, replicas: int) -> tuple[Place, ...]:
        """The GPUs to choose from: those that are not in use and do not fail, if there are enough of them."""
        idle = tuple(place for place in self.usable if not place.gpu.is_in_use())
        sound = tuple(place for place in idle if not place.failing)
        return next((some for some in (sound, idle) if len(some) >= replicas), self.usable)

    def link(self, one: int, other: int) -> Link:
        """What connects two GPUs."""
        return self.links[min(one, other), max(one, other)]

    def numa_node(self, index: int) -> int | None:
        """The NUMA node of a GPU."""
        return next(place.numa_node for place in self.places if place.gpu.index == index)


def read_layout(gpus: Gpus, pci: PciDevices | None, failing: Container[int] = ()) -> Layout:
    """The layout from the facts of the driver and the kernel, of the GPUs whose indices were read.

    Args:
        gpus: as the driver lists them.
        pci: as the kernel lists them.
        failing: the indices of those that fail a check.
    """
    places = tuple(_place(gpu, pci, failing) for gpu in sorted(gpus.devices, key=lambda gpu: gpu.index) if gpu.numbered)
    pairs = {(min(pair.first, pair.second), max(pair.first, pair.second)): pair for pair in gpus.pairs}
    links = {
        (one.gpu.index, other.gpu.index): _link(one, other, pairs.get((one.gpu.index, other.gpu.index)))
        for one, other in combinations(places, 2)
    }
    return Layout(places=places, links=links)


def _place(gpu: Gpu, pci: PciDevices | None, failing: Container[int]) -> Place:
    device = pci.find(gpu.bus_id) if pci else None
    numa = device.numa_node if device else None
    if numa is None and gpu.numa_affinity and len(gpu.numa_affinity) == 1:
        numa = gpu.numa_affinity[0]
    fails = gpu.index in failing
    return Place(gpu=gpu, device=device, numa_node=numa, narrow=_narrow(gpu), lost=_is_lost(gpu), failing=fails)


def _is_lost(gpu: Gpu) -> bool:
    """Whether the driver lost the GPU or could not open it, by NVML's names and nvidia-smi's sentences."""
    words = ("".join(filter(str.isalpha, error.lower())) for error in gpu.errors.values())
    opening = gpu.errors.get("handle", "").lower()
    is_withheld = any(word in opening for word in ("permission", "operating", "no answer within"))
    return any(word.endswith(("gpuislost", "resetrequired")) for word in words) or bool(opening and not is_withheld)


def _narrow(gpu: Gpu) -> str | None:
    busy = gpu.performance_state is not None and gpu.performance_state < _IDLE_FROM
    if busy and gpu.pcie_width and gpu.pcie_width_max and gpu.pcie_width < gpu.pcie_width_max:
        return f"x{gpu.pcie_width} of x{gpu.pcie_width_max}"
    return None


def _link(one: Place, other: Place, pair: GpuPair | None) -> Link:
    nvlinks = pair.nvlinks if pair else None
    statuses = (pair.p2p_read, pair.p2p_write) if pair else ()
    # Without a word from the driver, there may be NVLinks.
    is_reported = pair is not None and (pair.level is not None or nvlinks is not None)
    pcie_gbs = _pcie_gbs((one, other)) if is_reported else None
    return Link(
        first=one.gpu.index,
        second=other.gpu.index,
        level=pair.level if pair else None,
        nvlinks=nvlinks,
        blocked=next((status for status in statuses if status not in (None, "OK")), None),
        gbs=_nvlink_gbs(one.gpu, other.gpu, nvlinks) if nvlinks else pcie_gbs,
    )


def _nvlink_gbs(one: Gpu, other: Gpu, count: int) -> float | None:
    speeds = [link.speed_gbs for gpu in (one, other) for link in gpu.nvlinks or () if link.active and link.speed_gbs]
    return count * min(speeds) if speeds else None


def _pcie_gbs(ends: Sequence[Place]) -> float | None:
    """The bandwidth of the slower end, at the maximum generation, because an idle link runs slower."""
    return min(link_gbs(place.gpu.pcie_generation_max, _lanes(place)) or 0.0 for place in ends) or None


def _lanes(place: Place) -> int:
    return (place.gpu.pcie_width if place.narrow else place.gpu.pcie_width_max) or 0
