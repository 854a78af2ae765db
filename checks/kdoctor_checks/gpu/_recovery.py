"""The fix for the failures of a GPU in the kernel log: the strongest action that NVIDIA recommends for one of them."""

from collections.abc import Sequence

from kdoctor.commands.shell import quoted
from kdoctor.facts import KernelLogEvent
from kdoctor.model import Remedy, Rollback
from kdoctor_checks import _xids
from kdoctor_checks._gpus import DRIVER_MESSAGES, READ_ONLY, RESET_NEEDED, RESTART

_STRENGTH: tuple[_xids.Action, ...] = ("mechanics", "reboot", "update", "reset", "support")
_WITHOUT_XID: dict[str, _xids.Action] = {
    "fallen-off-the-bus": "reboot",
    "init-failed": "reboot",
    "uvm-fatal": "reboot",
    "pcie-error": "reboot",
    "version-mismatch": "reboot",
    "reset-required": "reset",
    "gsp-failed": "reset",
}
_REPORT = "sudo nvidia-bug-report.sh"


def recovery(bus_id: str | None, events: Sequence[KernelLogEvent]) -> tuple[Remedy, Rollback]:
    """The fix for these events of the GPU at this address, and how to undo it.

    Xid 154 sums up what the Xids before it need, so its action counts alone. After a reset it asks for nothing, and
    then the others count.
    """
    summed_up = [event for event in events if event.kind == "xid" and event.code == _xids.XID_RECOVERY]
    wanted = {_action(event) for event in (summed_up[-1:] or events)} - {"nothing"} or set(map(_action, events))
    found = next((action for action in _STRENGTH if action in wanted), "reboot")
    if found == "reset" and bus_id:
        return _reset(bus_id), RESTART
    if found == "mechanics":
        summary = "Check the GPU's power cables and seating. If the error returns, have the GPU serviced."
        return Remedy.inspect(summary, DRIVER_MESSAGES, _REPORT), READ_ONLY
    if found == "update":
        summary = "Update the driver, and with vGPU the host's driver too."
        return Remedy.reinstall(summary, look=("nvidia-smi", DRIVER_MESSAGES)), READ_ONLY
    if found == "support":
        summary = "Collect a report, and contact the vendor's support. If it happened once, a restart may be enough."
        return Remedy.inspect(summary, _REPORT, DRIVER_MESSAGES), READ_ONLY
    return RESET_NEEDED, RESTART


def _action(event: KernelLogEvent) -> _xids.Action | None:
    return _xids.action(event) if event.kind == "xid" else _WITHOUT_XID.get(event.kind)


def _reset(bus_id: str) -> Remedy:
    return Remedy.reboot(
        "Stop all processes on the GPU, then reset it. If the error returns, have the GPU serviced.",
        f"sudo nvidia-smi --gpu-reset -i {quoted(bus_id)}",
        look=(DRIVER_MESSAGES, f"nvidia-smi -q -i {quoted(bus_id)}"),
    )
