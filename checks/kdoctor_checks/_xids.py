"""What each Xid means, whether a job may start after it, and what NVIDIA's catalog recommends to do.

Source: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, as ``kdoctor_checklists.kernel_log``.
"""

import re
from typing import Literal

from kdoctor.facts import KernelLogEvent
from kdoctor_checks._catalog import NvLinkError, nvlink_errors, xids

XID_REMAPPING, XID_CONTAINED, XID_RECOVERY = 63, 94, 154
OF_REPAIRS = {XID_REMAPPING, XID_CONTAINED}
"""Memory that is replaced at the next reset. The catalog asks for nothing now, or to restart the program."""

NVLINK_5 = frozenset(range(144, 151))
"""The line itself says whether the error is fatal, and the catalog has a table for the numbers in the line."""
_LINK_DOWN = 149
"""Every other Xid 149 ends the link."""
OF_LINKS = {74, 136, 155, *NVLINK_5}
OF_MEMORY = {48, 64, 95, 140}
DRIVER_FIRMWARE = 38
"""The catalog asks for nothing after it alone. A time-out after it is its consequence."""
OF_FIRMWARE = {DRIVER_FIRMWARE, 119, 120}
AFTER_FIRMWARE = 109
"""A program's time-out, which follows where the firmware no longer answers."""

Action = Literal["nothing", "program", "reset", "reboot", "mechanics", "update", "support"]

ACTIONS: dict[str, Action] = {
    "IGNORE": "nothing",
    "RESTART_APP": "program",
    "WORKFLOW_XID_45": "program",
    # Only a program that was ended has this error; a GPU that needs more logs Xid 154 as well, which is judged.
    "XID_154_EVAL": "program",
    "RESET_GPU": "reset",
    "WORKFLOW_XID_48": "reset",
    "WORKFLOW_NVLINK_ERR": "reset",
    # CUDA uses unified memory, and then the bucket asks for a reset.
    "CHECK_UVM": "reset",
    "RESTART_BM": "reboot",
    "RESTART_VM": "reboot",
    "CHECK_MECHANICALS": "mechanics",
    "UPDATE_SWFW": "update",
    "CONTACT_SUPPORT": "support",
}
"""The buckets of the immediate action. A bucket that is missing here explains nothing."""

_OF_DISPLAYS = re.compile(r"VBLANK|SCANLINE|VGA_|DISP|DP_LT|HEAD_|CURSOR_|WINDOW_|CORE_CHANNEL")
"""Parts of the GPU that drive a display, in the names of Xids."""

_RECOVERIES: dict[str, Action] = {
    "none": "nothing",
    "gpu reset required": "reset",
    "gpu reset": "reset",
    "drain p2p": "reset",
    "drain and reset": "reset",
}
"""What Xid 154 asks for. Everything else, such as "Node Reboot Required", is a restart of the machine."""

Class = Literal["failure", "tolerated", "remapping", "unclassified"]

_NOT_FATAL = re.compile(r"non-?fatal", re.IGNORECASE)
_FATAL = re.compile(r"\bfatal\b", re.IGNORECASE)
_SUBCODE = re.compile(r": \d+, (?P<subcode>[A-Z][A-Z0-9_]+)")
_CAUSED_BY = re.compile(r"\bcaused by previous Xid (?P<code>\d{1,3})\b")
_STATUS = re.compile(r"\((?:0x)?[0-9a-fA-F]+ +(?:0x)?(?P<status>[0-9a-fA-F]+)\b")


def action(event: KernelLogEvent) -> Action | None:
    """What NVIDIA recommends to do at once after this Xid; None if the catalog does not say it."""
    if code := caused_by(event):
        # The error ended a program, so an error of NVLink was not one that its link recovers from.
        return "reset" if code in NVLINK_5 else ACTIONS.get(xids()[code].now)
    code = event.code or 0
    if code == XID_RECOVERY:
        return _RECOVERIES.get((event.recovery or "").strip().lower(), "reboot")
    if code in NVLINK_5:
        return _nvlink_action(event)
    if of_display(event):
        return "nothing"
    row = xids().get(code)
    return ACTIONS.get(row.now) if row else None


def caused_by(event: KernelLogEvent) -> int | None:
    """The Xid that caused this one by its own line, such as Xid 45 of a program that an error of NVLink ended."""
    found = _CAUSED_BY.search(event.text)
    return int(found["code"]) if found and int(found["code"]) in xids() else None


def of_display(event: KernelLogEvent) -> bool:
    """Whether it is about a part of the GPU that drives a display. No training uses it."""
    row = xids().get(event.code or 0)
    return row is not None and _OF_DISPLAYS.search(row.mnemonic) is not None


def classify(event: KernelLogEvent) -> Class:
    """Whether a job may start after this Xid. A code that the catalog does not explain is unclassified."""
    if event.code in OF_REPAIRS:
        return "remapping"
    found = action(event)
    if found is None:
        return "unclassified"
    return "tolerated" if found in {"nothing", "program"} else "failure"


def meaning(event: KernelLogEvent) -> str:
    """What the Xid means in a few words; empty if that is not known."""
    row = xids().get(event.code or 0)
    if row is None:
        return ""
    subcode = _SUBCODE.search(event.text)
    if event.code in NVLINK_5 and subcode:
        return f"{row.meaning}, {subcode['subcode']}"
    return row.mnemonic if row.meaning == "Unused" else row.meaning


def _nvlink_action(event: KernelLogEvent) -> Action | None:
    """The action for an error of NVLink 5: the line's severity, and the row for the numbers in the line."""
    row = _decode(event)
    if _NOT_FATAL.search(event.text):
        return ACTIONS.get(row.now, "nothing") if row else "nothing"
    if _FATAL.search(event.text):
        return "reset"
    if row:
        return ACTIONS.get(row.now)
    return "reset" if event.code == _LINK_DOWN else None


def _decode(event: KernelLogEvent) -> NvLinkError | None:
    """The row for the subcode and the error status, which is a mask of which one bit may match."""
    subcode, status = _SUBCODE.search(event.text), _STATUS.search(event.text)
    if not subcode or not status:
        return None
    mask = int(status["status"], 16)
    rows = [row for row in nvlink_errors() if row.xid == event.code and subcode["subcode"] in row.subcode.split("/")]
    exact = [row for row in rows if row.status == mask]
    return next(iter([*exact, *(row for row in rows if row.status & mask)]), None)
