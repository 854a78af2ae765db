"""Whether switches send the GPUs' peer traffic up to the processor."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, PciBridge, PciDevices, Unavailable
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import virtual
from kdoctor_checks.topology._peers import peer_traffic

UNREAD = "ACS on the way to the GPUs was not read; topology.acs-settings says why"


@check("topology.acs", severity=Severity.ERROR, needs_gpus=True)
def acs(pci: PciDevices, gpus: Gpus | Unavailable) -> Iterator[Outcome]:
    """No port above GPUs that exchange data over PCIe redirects their traffic (ACS).

    Why: Access Control Services send traffic between devices up to the root port, where the IOMMU may translate it or
    block it. NCCL then slows down, hangs at the first all-reduce, or yields NaN. Only ports above GPUs matter, and
    only where GPUs reach each other over PCIe: NVLink does not pass there. Hosts of virtual machines need ACS.
    Remedy: switch ACS off for these ports (it comes back with each restart), or VT-d or IOMMU off in the firmware.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
        https://github.com/tensorflow/tensorflow/issues/57893
    Failure modes: iommu_acs
    """
    if isinstance(gpus, Gpus) and (mode := virtual(gpus)):
        yield NotApplicable(
            reason=f"the GPUs are virtualised ({mode}): ACS is the host's business, and on there on purpose"
        )
        return
    if len(pci.gpus) <= 1:
        yield NotApplicable(reason="there are no two GPUs on the bus")
        return
    traffic = peer_traffic(gpus)
    bridges: dict[str, tuple[PciBridge, bool | None]] = {}
    for device in pci.gpus:
        uses = traffic.get(device.bus_id)
        for bridge in device.path or ():
            before = bridges.get(bridge.bus_id, (bridge, False))[1]
            bridges[bridge.bus_id] = (bridge, True if True in (before, uses) else before if uses is False else uses)
    findings = [bridge for bridge, uses in bridges.values() if bridge.acs_redirects and uses]
    open_ones = [bridge for bridge, uses in bridges.values() if bridge.acs_redirects and uses is None]
    unread = [bridge for bridge, _ in bridges.values() if bridge.acs_redirects is None]
    yield from map(_finding, findings)
    for bridge in open_ones:
        reason = "it redirects peer traffic, but whether the GPUs below exchange data over PCIe was not read"
        yield Unjudged(subject=f"PCI {bridge.bus_id}", reason=reason)
    if findings or open_ones:
        return
    if unread or any(device.path is None for device in pci.gpus):
        yield NotApplicable(reason=UNREAD)
        return
    for bridge, _ in bridges.values():
        yield Evidence(subject=f"PCI {bridge.bus_id}", observed=describe(bridge))
    if not bridges:
        yield NotApplicable(reason="no port stands above the GPUs, as far as can be seen from here")


def describe(bridge: PciBridge) -> str:
    """A port's ACS control in words."""
    state = "redirects" if bridge.acs_redirects else "does not redirect"
    return f"ACS {state} peer traffic (control {bridge.acs_control:#06x})"


def _finding(bridge: PciBridge) -> Finding:
    return Finding(
        subject=f"PCI {bridge.bus_id}",
        observed=describe(bridge),
        expected="no redirection above GPUs that exchange data over PCIe",
        remedy=Remedy(
            summary="Switch ACS off for the port (until the next restart), or VT-d or IOMMU off in the firmware's "
            "setup. NCCL_P2P_DISABLE=1 lets a job run past it, slowly.",
            action=Action.CONFIGURE,
            commands=(
                f"sudo lspci -vvv -s {bridge.bus_id} | grep ACSCtl",
                f"sudo setpci -s {bridge.bus_id} ECAP_ACS+0x6.w=0000",
            ),
        ),
        rollback=Rollback.to(
            "the recorded setting", f"sudo setpci -s {bridge.bus_id} ECAP_ACS+0x6.w={bridge.acs_control or 0:04x}"
        ),
    )
