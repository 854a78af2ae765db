from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Gpus, PciBridge, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import DRIVER
from kdoctor_checks.topology._peers import not_applicable, peer_traffic


@check("topology.acs", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def acs(pci: PciDevices, gpus: Gpus | Unavailable) -> Iterator[Outcome]:
    """ACS does not redirect traffic between GPUs that exchange data over PCIe.

    Why: Access Control Services (ACS) send traffic between devices through the root port, where the IOMMU may translate
    or block it. NCCL then slows down, hangs at the first all-reduce, or returns NaN. This only matters for ports above
    GPUs that access each other over PCIe, not over NVLink. Hosts of virtual machines need ACS.
    Remedy: turn ACS off for these ports (until the next restart), or turn VT-d or the IOMMU off in the firmware.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
        https://github.com/tensorflow/tensorflow/issues/57893
    Failure modes: iommu_acs
    """
    if excuse := not_applicable(pci, gpus, "ACS"):
        yield excuse
        return
    traffic = peer_traffic(gpus)
    bridges: dict[str, tuple[PciBridge, bool | None]] = {}
    for device in pci.gpus:
        uses = traffic.get(device.bus_id)
        for bridge in device.path or ():
            before = bridges.get(bridge.bus_id, (bridge, False))[1]
            bridges[bridge.bus_id] = (bridge, True if True in (before, uses) else before if uses is False else uses)
    findings = [bridge for bridge, uses in bridges.values() if bridge.acs_redirects and uses]
    unclear = [bridge for bridge, uses in bridges.values() if bridge.acs_redirects and uses is None]
    unread = [bridge for bridge, _ in bridges.values() if bridge.acs_redirects is None]
    remedy = turn_off(
        findings,
        "Turn ACS off for the ports (until the next restart), or turn VT-d or the IOMMU off in the firmware setup. "
        "NCCL_P2P_DISABLE=1 is a slow workaround.",
    )
    for bridge in findings:
        yield _finding(bridge, remedy)
    for bridge in unclear:
        reason = "redirects peer traffic, but whether the GPUs below exchange data over PCIe was not read"
        yield Unjudged(subject=f"PCI {bridge.bus_id}", reason=reason)
    if findings or unclear:
        return
    if unread or any(device.path is None for device in pci.gpus):
        yield NotApplicable(reason="ACS above the GPUs was not read (see topology.acs-settings)")
        return
    for bridge, _ in bridges.values():
        yield Evidence(subject=f"PCI {bridge.bus_id}", observed=describe(bridge))
    if not bridges:
        yield NotApplicable(reason="no visible port above the GPUs")


def describe(bridge: PciBridge) -> str:
    """The ACS control of a port."""
    state = "redirects" if bridge.acs_redirects else "does not redirect"
    return f"ACS {state} peer traffic (control {bridge.acs_control:#06x})"


def restore(bridge: PciBridge) -> Rollback:
    """The rollback to the recorded ACS control of a port."""
    command = f"sudo setpci -s {quoted(bridge.bus_id)} ECAP_ACS+0x6.w={bridge.acs_control or 0:04x}"
    return Rollback.to("restore the recorded setting", command)


def turn_off(bridges: Sequence[PciBridge], summary: str) -> Remedy:
    """The remedy that turns ACS off for these ports with one command."""
    ports = quoted(*(bridge.bus_id for bridge in bridges))
    one = f"sudo setpci -s {ports} ECAP_ACS+0x6.w=0000"
    every = f"for port in {ports}; do sudo setpci -s $port ECAP_ACS+0x6.w=0000; done"
    return Remedy.configure(
        summary, one if len(bridges) == 1 else every, look=("sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'",)
    )


def _finding(bridge: PciBridge, remedy: Remedy) -> Finding:
    return Finding(
        subject=f"PCI {bridge.bus_id}",
        observed=describe(bridge),
        expected="no redirection above GPUs that exchange data over PCIe",
        brief="ACS redirects peer traffic",
        remedy=remedy,
        rollback=restore(bridge),
    )
