"""Maps the replicas of a case to the GPUs of the machine."""

from kdoctor.facts import Gpu, GpuPair, Gpus, SmokeCase, Unavailable
from kdoctor.records import record


@record
class ReplicaGpus:
    """The GPUs of a case's replicas, in the order of ``SmokeCase.devices``."""

    names: tuple[str, ...]
    """As reports call them: ``GPU 3 (0000:3b:00.0)``, or TensorFlow's ``GPU:3`` if the GPU is not known."""
    gpus: tuple[Gpu | None, ...]
    links: dict[frozenset[int], GpuPair]
    """Links between GPUs, by their indices in nvidia-smi."""

    def link(self, first: int, second: int) -> GpuPair | None:
        """The link between the GPUs of two replicas, if it is known."""
        one, other = self.gpus[first], self.gpus[second]
        return self.links.get(frozenset((one.index, other.index))) if one and other else None

    def level(self, first: int, second: int) -> str | None:
        """The topology level, as in ``nvidia-smi topo -m`` (``NV18``, ``PIX``), if it is known."""
        link = self.link(first, second)
        return None if link is None else f"NV{link.nvlinks}" if link.nvlinks else link.level

    def pair_name(self, first: int, second: int) -> str:
        """``GPU 0 - GPU 3``."""
        link = self.link(first, second)
        return link.subject if link else f"{self.names[first]} - {self.names[second]}"


def replica_gpus(case: SmokeCase, gpus: Gpus | Unavailable) -> ReplicaGpus:
    """Match replicas and GPUs by PCI address, because TensorFlow's order may differ from the driver's."""
    known = gpus if isinstance(gpus, Gpus) else None
    by_address = {gpu.bus_id: gpu for gpu in known.devices if gpu.bus_id} if known else {}
    addresses = case.bus_ids if len(case.bus_ids) == len(case.devices) else (None,) * len(case.devices)
    found = tuple(by_address.get(address) if address else None for address in addresses)
    names = tuple(
        gpu.subject if gpu else device.rpartition("device:")[2] + (f" ({address})" if address else "")
        for gpu, device, address in zip(found, case.devices, addresses, strict=True)
    )
    links = {frozenset((pair.first, pair.second)): pair for pair in known.pairs} if known else {}
    return ReplicaGpus(names=names, gpus=found, links=links)
