"""The fix for the failures of a GPU in the kernel log: the strongest action that NVIDIA recommends for one of them."""

from collections.abc import Sequence

from kdoctor.commands.shell import quoted
from kdoctor.commands.system import NVIDIA_DEVICES
from kdoctor.facts import KernelLogEvent
from kdoctor.model import READ_ONLY, Remedy, Rollback
from kdoctor_checks import _xids
from kdoctor_checks._gpus import DRIVER_MESSAGES, RESET_NEEDED, RESTART

_STRENGTH: tuple[_xids.Action, ...] = ("mechanics", "reboot", "update", "reset", "support")
_WITHOUT_XID: dict[str, _xids.Action] = {
    "fallen-off-the-bus": "reboot",
    "init-failed": "reboot",
    "uvm-fatal": "reboot",
    "pcie-error": "reboot",
    "reset-required": "reset",
    "gsp-failed": "reset",
}
_REPORT = "sudo nvidia-bug-report.sh"
SUPPORT = Remedy.inspect(
    "Collect a report, and contact the vendor's support. If it happened once, a restart may be enough.",
    _REPORT,
    DRIVER_MESSAGES,
)
STATED: dict[str, Remedy] = {
    "no-address-space": Remedy.configure(
        'Give the GPU address space: in the firmware, switch on "Above 4G decoding" and raise the MMIO size; in a '
        "virtual machine, raise the 64-bit MMIO window of its firmware. Else try the kernel's parameter pci=realloc.",
        look=("sudo dmesg | grep -E 'BAR|no space|NVRM'", "sudo lspci -vv -d 10de: | grep -E '^[0-9a-f]|Region'"),
    ),
    "not-supported": Remedy.reinstall(
        "Install the driver that the message names: the open kernel modules need Turing or later, Blackwell needs the "
        "open ones, and older GPUs need an older branch.",
        look=("cat /proc/driver/nvidia/version", NVIDIA_DEVICES, DRIVER_MESSAGES),
    ),
    "no-firmware": Remedy.reinstall(
        "Install the package with the GSP firmware of exactly the driver's version, also in the initramfs or image.",
        look=("ls /lib/firmware/nvidia", "cat /proc/driver/nvidia/version", DRIVER_MESSAGES),
    ),
    "no-power": Remedy.inspect("Connect all power cables of the GPU.", DRIVER_MESSAGES),
    "driver-crash": Remedy.reinstall(
        "Restart the machine, and install a driver release that supports this kernel, or start the previous kernel. If "
        "it crashes again, send NVIDIA the report.",
        "sudo reboot",
        look=("uname -r", "cat /proc/driver/nvidia/version", _REPORT),
    ),
    "driver-hang": Remedy.reboot(
        "Restart the machine: such a program cannot be killed. If it happens again, send NVIDIA the report.",
        "sudo reboot",
        look=("ps -eo pid,stat,wchan:32,args | grep ' D'", _REPORT),
    ),
}
"""The fix for each kind of message that is its own cause."""


def recovery(bus_id: str | None, events: Sequence[KernelLogEvent], resets: Sequence[str]) -> tuple[Remedy, Rollback]:
    """The fix for these events of the GPU at this address, and how to undo it.

    A message that is its own cause has its own fix.

    Args:
        bus_id: the address.
        events: the failures.
        resets: the addresses of all GPUs that a reset recovers. One command resets them.
    """
    if stated := next((event.kind for event in events if event.kind in STATED), None):
        return STATED[stated], RESTART if stated.startswith("driver-") else READ_ONLY
    found = _strongest(events)
    if found == "reset" and bus_id:
        return _reset(resets), RESTART
    if found == "mechanics":
        summary = "Check the GPU's power cables and seating. If the error returns, have the GPU serviced."
        return Remedy.inspect(summary, DRIVER_MESSAGES, _REPORT), READ_ONLY
    if found == "update":
        summary = "Update the driver, and with vGPU the host's driver too."
        return Remedy.reinstall(summary, look=("nvidia-smi", DRIVER_MESSAGES)), READ_ONLY
    if found == "support":
        return SUPPORT, READ_ONLY
    return RESET_NEEDED, RESTART


def is_reset(events: Sequence[KernelLogEvent]) -> bool:
    """Whether a reset of the GPU recovers it from these events."""
    return _strongest(events) == "reset" and not any(event.kind in STATED for event in events)


def _strongest(events: Sequence[KernelLogEvent]) -> _xids.Action:
    """The strongest action that one of the events needs.

    Xid 154 sums up what the Xids before it need, so its action counts alone. After a reset it asks for nothing, and
    then the others count.
    """
    summed_up = [event for event in events if event.kind == "xid" and event.code == _xids.XID_RECOVERY]
    wanted = {_action(event) for event in (summed_up[-1:] or events)} - {"nothing"} or set(map(_action, events))
    return next((action for action in _STRENGTH if action in wanted), "reboot")


def _action(event: KernelLogEvent) -> _xids.Action | None:
    return _xids.action(event) if event.kind == "xid" else _WITHOUT_XID.get(event.kind)


def _reset(addresses: Sequence[str]) -> Remedy:
    named = quoted(",".join(addresses))
    return Remedy.reboot(
        "Stop all processes on the GPU, then reset it. If the error returns, have the GPU serviced.",
        f"sudo nvidia-smi --gpu-reset -i {named}",
        look=(DRIVER_MESSAGES, f"nvidia-smi -q -i {named}"),
    )
