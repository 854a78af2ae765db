"""Whether ACS is off above the GPUs, and could be read."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, PciBridge, PciDevices, Unavailable
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import virtual
from kdoctor_checks.topology._peers import peer_traffic
from kdoctor_checks.topology.acs import describe


@check("topology.acs-settings", severity=Severity.INFO, needs_gpus=True, requires=["topology.acs"])
def acs_settings(pci: PciDevices, gpus: Gpus | Unavailable) -> Iterator[Outcome]:
    """The ports above the GPUs could be asked for ACS, and redirect nothing.

    Why: only root may read a port's ACS setting, so that a hazard may go unseen. Where ACS redirects traffic that
    does not pass there (NVLink joins the GPUs, or there is no peer access), it costs the network cards beside them
    their direct way to the GPUs. Where it harms the GPUs, topology.acs tells.
    Remedy: run kdoctor as root once to see; switch ACS off where network cards reach GPUs directly.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html
        https://docs.kernel.org/PCI/sysfs-pci.html
    """
    if isinstance(gpus, Gpus) and (mode := virtual(gpus)):
        yield NotApplicable(reason=f"the GPUs are virtualised ({mode}): ACS is the host's business")
        return
    if len(pci.gpus) <= 1:
        yield NotApplicable(reason="there are no two GPUs on the bus")
        return
    harmless = {address for address, uses in peer_traffic(gpus).items() if uses is False}
    seen: set[str] = set()
    for device in pci.gpus:
        if device.path is None:
            yield Unjudged(subject=f"GPU at {device.bus_id}", reason="the way to its root port was not read")
        for bridge in device.path or ():
            if bridge.bus_id not in seen:
                seen.add(bridge.bus_id)
                yield from _judge(bridge, harmless=device.bus_id in harmless)
    if not seen and all(device.path is not None for device in pci.gpus):
        yield NotApplicable(reason="no port stands above the GPUs, as far as can be seen from here")


def _judge(bridge: PciBridge, *, harmless: bool) -> Iterator[Outcome]:
    subject = f"PCI {bridge.bus_id}"
    if bridge.acs_redirects is None:
        yield Unjudged(subject=subject, reason="its ACS setting could not be read (only root may)")
    elif not bridge.acs_redirects:
        yield Evidence(subject=subject, observed=describe(bridge))
    elif harmless:
        yield Finding(
            subject=subject,
            observed=f"{describe(bridge)}; the GPUs exchange nothing over PCIe",
            expected="no redirection",
            remedy=Remedy(
                summary="Switch ACS off where network cards reach GPUs directly.",
                action=Action.CONFIGURE,
                commands=(f"sudo setpci -s {bridge.bus_id} ECAP_ACS+0x6.w=0000",),
            ),
            rollback=Rollback.to(
                "the recorded setting", f"sudo setpci -s {bridge.bus_id} ECAP_ACS+0x6.w={bridge.acs_control or 0:04x}"
            ),
        )
