from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.commands.system import branch_of
from kdoctor.facts import Gpus, Host, Kernel, PciDevices
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, answering

_DAEMON = "nv-fabricmanager"


@check("topology.fabric-manager", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def fabric_manager(pci: PciDevices, gpus: Gpus, kernel: Kernel, host: Host) -> Iterator[Outcome]:
    """The fabric manager is running on a machine with NVSwitches.

    Why: the fabric manager initializes the NVSwitches. Without it, CUDA does not start (error 802). GPUs before Hopper
    do not report their registration; for those that do, see topology.fabric. Containers do not see the programs of
    their host.
    Remedy: install the fabric manager in the same version as the driver, and start it.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
        https://github.com/wilicc/gpu-burn/issues/133
    """
    present = answering(gpus)
    branch = branch_of(gpus.driver_version) if gpus.driver_version else None
    if not pci.switches:
        yield NotApplicable(reason="no NVSwitch among the PCI devices")
    elif present and all(gpu.fabric_state not in (None, "not-supported") for gpu in present):
        yield NotApplicable(reason="the GPUs report their registration (see topology.fabric)")
    elif kernel.daemons is not None and _DAEMON in kernel.daemons:
        switches = counted(len(pci.switches), "NVSwitch", "NVSwitches")
        yield Evidence(subject=_DAEMON, observed=f"running ({switches})", brief="fabric manager running")
    elif host.container != "none":
        yield NotApplicable(reason="this is or may be a container, which does not see the host's programs")
    elif kernel.daemons is None:
        yield Unjudged(subject=_DAEMON, reason="running programs could not be listed")
    else:
        yield Finding(
            subject=_DAEMON,
            brief="not running",
            observed=f"not running, on a machine with {counted(len(pci.switches), 'NVSwitch', 'NVSwitches')}",
            expected="running",
            remedy=Remedy.configure(
                "Install the fabric manager in the same version as the driver (Ubuntu command shown), and start it.",
                *(() if branch is None else (f"sudo apt-get install {quoted(f'nvidia-fabricmanager-{branch}')}",)),
                "sudo systemctl enable --now nvidia-fabricmanager",
                look=("cat /proc/driver/nvidia/version", "sudo journalctl -u nvidia-fabricmanager"),
            ),
            rollback=Rollback.to("stop the fabric manager again", "sudo systemctl disable --now nvidia-fabricmanager"),
        )
