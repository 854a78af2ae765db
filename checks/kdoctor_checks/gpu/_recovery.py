"""The fix for the failures of a GPU in the kernel log: the strongest action that NVIDIA recommends for one of them."""

import re
from collections.abc import Sequence

from kdoctor.commands.shell import quoted
from kdoctor.commands.system import NVIDIA_DEVICES
from kdoctor.facts import KernelLogEvent
from kdoctor.model import READ_ONLY, Remedy, Rollback
from kdoctor_checks import _xids
from kdoctor_checks._driver import WITHOUT_GPU
from kdoctor_checks._gpus import DRIVER_MESSAGES, RESEAT, RESET_NEEDED, RESTART

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
_DRIVER_AND_GPUS = ("cat /proc/driver/nvidia/version", NVIDIA_DEVICES, DRIVER_MESSAGES)
_NAMED_DRIVERS = (
    (
        "Legacy drivers|legacy GPU",
        "Install the driver branch that the message names, the last one that supports this GPU, and hold it.",
    ),
    (
        r"requires use of the NVIDIA open kernel|vGPU host system",
        "Install the open kernel modules of this driver: this GPU needs them.",
    ),
    (
        r"by (?:the )?open\b|Open nvidia\.ko",
        "Install the proprietary kernel modules of this driver: the open ones need Turing or later.",
    ),
)
"""Words of a message about a driver that does not support the GPU, and its fix, where it is not a newer release."""
STATED: dict[str, Remedy] = {
    "no-address-space": Remedy.configure(
        'Give the GPU address space: in the firmware, switch on "Above 4G decoding" and raise the MMIO size; in a '
        "virtual machine, raise the 64-bit MMIO window of its firmware. Else try the kernel's parameter pci=realloc.",
        look=("sudo dmesg | grep -E 'BAR|no space|NVRM'", "sudo lspci -vv -d 10de: | grep -E '^[0-9a-f]|Region'"),
    ),
    "not-supported": Remedy.reinstall(
        "Install a newer driver: this release does not know the GPU. A vGPU needs the guest driver that belongs to "
        "its host's. If it runs other GPUs of the same model here, have this one serviced.",
        look=_DRIVER_AND_GPUS,
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
_OF_LINK = Remedy.reboot(
    f"Restart the machine. If it returns: {RESEAT[0].lower()}{RESEAT[1:]}",
    "sudo reboot",
    look=("sudo dmesg | grep AER", "sudo lspci -vvv -t"),
)
_OF_START = Remedy.reboot(
    "Switch the machine off and on. If the GPU still does not start, install another driver release; in a virtual "
    "machine, check the passthrough on the host. Then have the GPU serviced.",
    "sudo poweroff",
    look=(DRIVER_MESSAGES, NVIDIA_DEVICES),
)
_NONE_FOUND = re.compile(r"NVRM: (?:No NVIDIA [\w ]+ found|NVIDIA init module failed)")
_FIRMWARE_NEXT = "If it returns, install another driver release, which brings its firmware; then have the GPU serviced."
_OF_FIRMWARE = Remedy.reboot(
    f"Restart the machine. {_FIRMWARE_NEXT}", "sudo reboot", look=(DRIVER_MESSAGES, "nvidia-smi -L")
)

_BY_ACTION: dict[_xids.Action, Remedy] = {
    "mechanics": Remedy.inspect(
        "Check the GPU's power cables and seating. If the error returns, have the GPU serviced.",
        DRIVER_MESSAGES,
        _REPORT,
    ),
    "update": Remedy.reinstall(
        "Update the driver, and with vGPU the host's driver too.", look=("nvidia-smi", DRIVER_MESSAGES)
    ),
    "support": SUPPORT,
}


def recovery(bus_id: str | None, events: Sequence[KernelLogEvent], resets: Sequence[str]) -> tuple[Remedy, Rollback]:
    """The fix for these events of the GPU at this address, and how to undo it.

    A message that is its own cause has its own fix.

    Args:
        bus_id: the address.
        events: the failures.
        resets: the addresses of all GPUs that a reset recovers. One command resets them.
    """
    if stated := next((event for event in events if event.kind in STATED), None):
        remedy = _named_driver(stated) if stated.kind == "not-supported" else None
        return remedy or STATED[stated.kind], RESTART if stated.kind.startswith("driver-") else READ_ONLY
    found = _strongest(events)
    others = [event for event in events if event.code not in (_xids.AFTER_FIRMWARE, _xids.XID_RECOVERY)]
    of_firmware = bool(others) and all(map(is_of_firmware, others))
    if found == "reset" and bus_id:
        return _reset(resets, _FIRMWARE_NEXT if of_firmware else _SERVICE_NEXT), RESTART
    kinds = {event.kind for event in events}
    if all(_NONE_FOUND.search(event.text) for event in events):
        return WITHOUT_GPU, READ_ONLY
    of_start = _OF_START if {"init-failed"} <= kinds <= {"init-failed", "gsp-failed"} else None
    if own := _OF_FIRMWARE if of_firmware else _OF_LINK if kinds == {"pcie-error"} else of_start:
        return own, RESTART
    return (_BY_ACTION[found], READ_ONLY) if found in _BY_ACTION else (RESET_NEEDED, RESTART)


def is_of_firmware(event: KernelLogEvent) -> bool:
    """Whether the GPU's firmware failed."""
    return event.kind == "gsp-failed" or (event.kind == "xid" and event.code in _xids.OF_FIRMWARE)


def _named_driver(event: KernelLogEvent) -> Remedy | None:
    summary = next((fix for words, fix in _NAMED_DRIVERS if re.search(words, event.text)), None)
    return Remedy.reinstall(summary, look=_DRIVER_AND_GPUS) if summary else None


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


_SERVICE_NEXT = "If the error returns, have the GPU serviced."


def _reset(addresses: Sequence[str], then: str) -> Remedy:
    named = quoted(",".join(addresses))
    return Remedy.reboot(
        f"Stop all processes on the GPU, then reset it. {then}",
        f"sudo nvidia-smi --gpu-reset -i {named}",
        look=(DRIVER_MESSAGES, f"nvidia-smi -q -i {named}"),
    )
