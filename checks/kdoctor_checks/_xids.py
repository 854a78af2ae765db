"""What each Xid means, and whether a job may start after it.

The tables follow the catalog of NVIDIA for Ampere and newer GPUs, as of 2026-11-22:
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html. A code that the catalog marks as unused, or for
which it names no immediate action, is in none of them.
"""

from __future__ import annotations

import re
from typing import Literal

from kdoctor.facts import KernelLogEvent

XID_REMAPPING, XID_RECOVERY = 63, 154

FAILURES = {
    46: "GPU stopped processing",
    48: "double-bit ECC error",
    54: "auxiliary power is not connected",
    62: "micro-controller halted",
    64: "row remapping or page retirement failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    94: "contained memory error",
    95: "uncontained memory error",
    109: "context switch timed out",
    110: "security fault",
    119: "GSP firmware timed out",
    120: "GSP firmware failed",
    136: "NVLink training failed",
    140: "unrecovered ECC error",
    143: "GPU initialization failed",
    151: "key rotation failed",
    155: "NVLink down",
    156: "memory or unit retired",
    158: "GPU timed out fatally",
}
"""Immediate action: reset the GPU, restart the machine, check its mechanics, or follow the workflow for ECC or NVLink.

Xid 94 ends one program only, but the bad memory stays in use until the GPU is reset.
"""
NVLINK_5 = {
    144: "NVLink SAW error",
    145: "NVLink RLW error",
    146: "NVLink TLW error",
    147: "NVLink TREX error",
    148: "NVLink NVLPW_CTRL error",
    149: "NVLink failed to come up",
    150: "NVLink MSE error",
}
"""The line itself says whether the error is fatal (``SAW_MVB Fatal``), except that every Xid 149 ends the link."""
OF_LINKS = {74, 136, 155, *NVLINK_5}
OF_MEMORY = {48, 64, 94, 95, 140}

TOLERATED = {
    8: "GPU stopped processing",
    11: "invalid command stream",
    13: "graphics engine exception",
    14: "injected error",
    25: "illegal command stream",
    31: "memory page fault",
    32: "corrupted command stream",
    37: "driver firmware error",
    38: "driver firmware error",
    43: "GPU stopped processing",
    44: "fault during a context switch",
    45: "cleanup after an earlier error",
    60: "video processor exception",
    66: "illegal access by the driver",
    67: "illegal access by the driver",
    69: "graphics engine class error",
    80: "corrupted data sent to the GPU",
    92: "high rate of single-bit ECC errors",
    93: "wear limit of the infoROM reached",
    106: "test message",
    107: "test message",
    108: "NVLink translation error",
    121: "corrected C2C errors",
    137: "illegal access over NVLink",
    141: "CUDA fast path error",
    152: "DLA memory error",
    153: "DLA timed out",
    157: "memory or unit not repairable",
    160: "channel retired",
    161: "channel not retired",
    **dict.fromkeys((39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136)), "copy engine error"),
    **dict.fromkeys((68, 83, 84, 88, 89, 96, 97, 98), "video decoder error"),
    **dict.fromkeys((82, *range(99, 106)), "JPEG decoder error"),
    **dict.fromkeys((86, 139), "optical flow error"),
}
"""Immediate action: restart the program, or ignore. The job that caused it ended; the next one may start."""

Class = Literal["failure", "tolerated", "remapping", "unclassified"]

_NOT_FATAL = re.compile(r"non-?fatal", re.IGNORECASE)
_FATAL = re.compile(r"\bfatal\b", re.IGNORECASE)


def classify(event: KernelLogEvent) -> Class:
    """Whether a job may start after this Xid. A code that the catalog does not explain is unclassified."""
    code = event.code or 0
    if code == XID_REMAPPING:
        return "remapping"
    if code == XID_RECOVERY:
        return "tolerated" if (event.recovery or "").strip().lower() == "none" else "failure"
    if code in NVLINK_5:
        if _NOT_FATAL.search(event.text):
            return "tolerated"
        return "failure" if code == 149 or _FATAL.search(event.text) else "unclassified"  # noqa: PLR2004 - see NVLINK_5
    if code in FAILURES:
        return "failure"
    return "tolerated" if code in TOLERATED else "unclassified"


def meaning(code: int | None) -> str:
    """What the Xid means in a few words; empty if that is not known."""
    return (FAILURES | NVLINK_5 | TOLERATED).get(code or 0, "")
