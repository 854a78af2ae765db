from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, PciBridge, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks.topology._peers import not_applicable, peer_traffic
from kdoctor_checks.topology.acs import describe, restore, turn_off


@check("topology.acs-settings", severity=Severity.INFO, needs_gpus=True, requires=["topology.acs"])
def acs_settings(pci: PciDevices, gpus: Gpus | Unavailable) -> Iterator[Outcome]:
    """ACS is readable and off on all ports above the GPUs.

    Why: only root can read the ACS setting of a port, so a problem may go unnoticed. If ACS redirects traffic that the
    GPUs do not send (because of NVLink, or without peer access), it only slows down network cards that access GPUs
    directly. topology.acs reports ports where it affects the GPUs.
    Remedy: run kdoctor as root once to read it. Turn ACS off if network cards access GPUs directly.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html
        https://docs.kernel.org/PCI/sysfs-pci.html
    """
    if excuse := not_applicable(pci, gpus, "ACS"):
        yield excuse
        return
    harmless = {address for address, uses in peer_traffic(gpus).items() if uses is False}
    bridges: dict[str, PciBridge] = {}
    above_senders: set[str] = set()
    for device in pci.gpus:
        if device.path is None:
            yield Unjudged(subject=f"GPU at {device.bus_id}", reason="the path to its root port was not read")
        found = {bridge.bus_id: bridge for bridge in device.path or ()}
        bridges |= found
        if device.bus_id not in harmless:
            above_senders |= found.keys()
    on = [bridge for bridge in bridges.values() if bridge.acs_redirects and bridge.bus_id not in above_senders]
    remedy = turn_off(on, "Turn ACS off if network cards access GPUs directly.")
    for bridge in bridges.values():
        yield from _judge(bridge, remedy, harmless=bridge.bus_id not in above_senders)
    if not bridges:
        yield NotApplicable(reason="no visible port above the GPUs")


def _judge(bridge: PciBridge, remedy: Remedy, *, harmless: bool) -> Iterator[Outcome]:
    subject = f"PCI {bridge.bus_id}"
    if bridge.acs_redirects is None:
        yield Unjudged(subject=subject, reason="the ACS setting was not read, which needs root")
    elif not bridge.acs_redirects:
        yield Evidence(subject=subject, observed=describe(bridge))
    elif harmless:
        yield Finding(
            subject=subject,
            observed=f"{describe(bridge)}, but the GPUs exchange no data over PCIe",
            brief="ACS redirects peer traffic, but the GPUs send none",
            expected="no redirection",
            remedy=remedy,
            rollback=restore(bridge),
        )
