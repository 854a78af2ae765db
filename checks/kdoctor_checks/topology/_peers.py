"""Whether GPUs exchange data directly over PCIe."""

from kdoctor.facts import Gpus, PciDevices, Unavailable
from kdoctor.model import NotApplicable
from kdoctor_checks._gpus import absent, nvlinks, virtual


def not_applicable(pci: PciDevices, gpus: Gpus | Unavailable, setting: str) -> NotApplicable | None:
    """Why a setting of the host cannot affect peer traffic: virtual GPUs, or fewer than two GPUs."""
    if isinstance(gpus, Gpus) and (mode := virtual(gpus)):
        return NotApplicable(reason=f"virtual GPUs ({mode}): the host controls {setting}")
    if excuse := absent(gpus, pci):
        return excuse
    return NotApplicable(reason="fewer than two GPUs in the list of PCI devices") if len(pci.gpus) <= 1 else None


def peer_traffic(gpus: Gpus | Unavailable) -> dict[str, bool | None]:
    """The address of each GPU to whether it accesses another GPU directly over PCIe; None if unknown.

    GPUs that are connected by NVLink or have no peer access do not.
    """
    if not isinstance(gpus, Gpus):
        return {}
    found: dict[str, bool | None] = {gpu.bus_id: False for gpu in gpus.devices if gpu.bus_id}
    addresses = {gpu.index: gpu.bus_id for gpu in gpus.devices}
    for pair in gpus.pairs:
        links = nvlinks(pair)
        if links:
            continue
        if pair.p2p_read is None or (links is None and pair.p2p_read == "OK"):
            uses: bool | None = None
        else:
            uses = pair.p2p_read == "OK"
        for index in (pair.first, pair.second):
            address = addresses.get(index)
            if address in found and found[address] is not True and uses is not False:
                found[address] = uses
    return found
