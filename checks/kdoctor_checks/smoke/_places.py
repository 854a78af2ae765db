"""Which GPU of the machine a replica ran on, and what joins two of them."""

from __future__ import annotations

from dataclasses import dataclass

from kdoctor.facts import Gpu, GpuPair, Gpus, SmokeCase, Unavailable


@dataclass(frozen=True, kw_only=True)
class Places:
    """The devices of a case, by their places in ``SmokeCase.devices``."""

    names: tuple[str, ...]
    """As reports call them: ``GPU 3 (0000:3b:00.0)``, or TensorFlow's ``GPU:3`` where it is not known which that is."""
    gpus: tuple[Gpu | None, ...]
    pairs: dict[frozenset[int], GpuPair]
    """What joins two GPUs, by their indices in nvidia-smi."""

    def joint(self, first: int, second: int) -> GpuPair | None:
        """What joins two devices, where that is known."""
        one, other = self.gpus[first], self.gpus[second]
        return self.pairs.get(frozenset((one.index, other.index))) if one and other else None

    def level(self, first: int, second: int) -> str | None:
        """``NV18``, ``PIX``, ... in the words of ``nvidia-smi topo -m``; None where it is not known."""
        joint = self.joint(first, second)
        return None if joint is None else f"NV{joint.nvlinks}" if joint.nvlinks else joint.level

    def pair_name(self, first: int, second: int) -> str:
        """``GPU 0 - GPU 3``."""
        joint = self.joint(first, second)
        return joint.subject if joint else f"{self.names[first]} - {self.names[second]}"


def places_of(case: SmokeCase, gpus: Gpus | Unavailable) -> Places:
    """Join TensorFlow's devices and the driver's GPUs by their PCI addresses: their orders may differ."""
    listed = gpus if isinstance(gpus, Gpus) else None
    by_address = {gpu.bus_id: gpu for gpu in listed.devices if gpu.bus_id} if listed else {}
    addresses = case.bus_ids if len(case.bus_ids) == len(case.devices) else (None,) * len(case.devices)
    found = tuple(by_address.get(address) if address else None for address in addresses)
    names = tuple(
        gpu.subject if gpu else device.rpartition("device:")[2] + (f" ({address})" if address else "")
        for gpu, device, address in zip(found, case.devices, addresses, strict=True)
    )
    pairs = {frozenset((pair.first, pair.second)): pair for pair in listed.pairs} if listed else {}
    return Places(names=names, gpus=found, pairs=pairs)
