"""Whether the fabric manager runs where NVSwitches are."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, Host, Kernel, PciDevices
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import answering

_DAEMON = "nv-fabricmanager"


@check("topology.fabric-manager", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def fabric_manager(pci: PciDevices, gpus: Gpus, kernel: Kernel, host: Host) -> Iterator[Outcome]:
    """The fabric manager runs on a machine with NVSwitches.

    Why: it sets the NVSwitches up; without it CUDA does not start there (error 802). GPUs before Hopper do not tell
    whether it did; where the GPUs tell, topology.fabric judges. In a container the host's programs are not seen.
    Remedy: install the fabric manager in the driver's own version, and start it.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
        https://github.com/wilicc/gpu-burn/issues/133
    """
    present = answering(gpus)
    if not pci.switches:
        yield NotApplicable(reason="no NVSwitch is among the PCI devices")
    elif present and all(gpu.fabric_state not in (None, "not-supported") for gpu in present):
        yield NotApplicable(reason="the GPUs tell their registration themselves (topology.fabric)")
    elif kernel.daemons is not None and _DAEMON in kernel.daemons:
        yield Evidence(subject=_DAEMON, observed=f"runs, for {len(pci.switches)} NVSwitches")
    elif host.container != "none":
        yield NotApplicable(reason="this is, or may be, a container, from which the host's programs are not seen")
    elif kernel.daemons is None:
        yield Unjudged(subject=_DAEMON, reason="the running programs could not be listed")
    else:
        yield Finding(
            subject=_DAEMON,
            observed=f"does not run, and there are {len(pci.switches)} NVSwitches",
            expected="it runs",
            remedy=Remedy(
                summary="Install the fabric manager in the driver's own version, and start it.",
                action=Action.CONFIGURE,
                commands=(
                    "cat /proc/driver/nvidia/version",
                    "sudo systemctl enable --now nvidia-fabricmanager",
                    "sudo journalctl -u nvidia-fabricmanager",
                ),
            ),
            rollback=Rollback.to("the manager off, as recorded", "sudo systemctl disable --now nvidia-fabricmanager"),
        )
