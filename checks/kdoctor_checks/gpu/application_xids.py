from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelLog, KernelLogEvent, PciDevices, Unavailable
from kdoctor.model import Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks._gpus import RESPONDING, subjects
from kdoctor_checks._kernel_log import (
    LOG_UNREAD,
    before_timeout,
    by_device,
    codes,
    fatal_pcie,
    is_failure,
    is_unclassified,
    log_subject,
    nothing_logged,
    nvidia_addresses,
    summary,
)
from kdoctor_checks._xids import XID_RECOVERY, action, classify, of_display
from kdoctor_checks.gpu._recovery import SUPPORT

_REMEDY = Remedy.change_code(
    "Look up the Xid in NVIDIA's catalog, and check the program named in the log line.",
    look=("sudo dmesg | grep -i xid",),
)
_CRASH_REMEDY = Remedy.change_code(
    "Run the program again with these variables. They show its Python stack and NCCL's last steps:",
    look=("export PYTHONFAULTHANDLER=1 NCCL_DEBUG=INFO",),
)
_CRASH = "program-crash"
_FOLLOW = {43, 45}
"""Xids of the programs that a failure ended."""


@check("gpu.application-xids", severity=Severity.INFO, needs_gpus=True, unread=LOG_UNREAD)
def application_xids(log: KernelLog, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> Iterator[Outcome]:
    """The kernel logged no failure of a program.

    Why: Xids 13, 31 and 43 usually mean that a program accessed memory out of bounds or ran an illegal instruction. If
    a program that is known to work triggers them, the GPU may be faulty. Other Xids for which NVIDIA's catalog asks at
    most to restart the program are reported here too, and crashes (segfaults) in libraries of CUDA and TensorFlow.
    Remedy: look up the Xid in NVIDIA's catalog, and check the program named in the log line.
    Sources:
        https://docs.nvidia.com/deploy/xid-errors/
        https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
    """
    causes = before_timeout(log.events)
    events = [item for item in log.events if _is_of_program(item) and item not in causes]
    ended = fatal_pcie(log, nvidia_addresses(gpus, pci))
    failures = [item for item in log.events if item.bus_id and (is_failure(item) or item in ended)]
    for bus_id, found in by_device(events).items():
        crashed = all(event.kind == _CRASH for event in found)
        own = [log.events.index(item) for item in failures if item.bus_id == bus_id]
        after = bool(own) and all(event.code in _FOLLOW or log.events.index(event) > min(own) for event in found)
        follows = bool(failures) if crashed else after
        yield Finding(
            subject="kernel log" if crashed else log_subject(bus_id, subjects(gpus, pci)),
            observed=summary(found),
            brief=_brief(found),
            noted=not follows,
            expected="no Xid and no crash of a program",
            remedy=_CRASH_REMEDY if crashed else _REMEDY if any(map(_ended, found)) else SUPPORT,
            explained_by=("gpu.kernel-log", RESPONDING) if follows else (),
        )
    unclassified = [event for event in log.events if event.kind == "xid" and is_unclassified(event)]
    if unclassified:
        yield Unjudged(subject="kernel log", reason=f"{codes(unclassified)} may be of a program (see gpu.kernel-log)")
    elif not events:
        yield nothing_logged(log, gpus, pci, "Xid of a program", sign="Xid")


def _is_of_program(event: KernelLogEvent) -> bool:
    return event.kind == _CRASH or (
        event.kind == "xid" and event.code != XID_RECOVERY and classify(event) == "tolerated"
    )


def _ended(event: KernelLogEvent) -> bool:
    """Whether a program failed. Other Xids for which the catalog asks nothing now are about the GPU or its driver."""
    return event.kind == "xid" and (event.code in _FOLLOW or action(event) == "program")


def _brief(events: Sequence[KernelLogEvent]) -> str:
    libraries = dict.fromkeys(event.library for event in events if event.library)
    if libraries and all(event.kind == _CRASH for event in events):
        return f"a program crashed, not a GPU ({some(list(libraries), 2)})"
    xids = [event for event in events if event.kind == "xid"]
    ended = [event for event in xids if _ended(event)]
    numbers = some([f"{code}" for code in dict.fromkeys(event.code for event in ended or xids)], 3)
    if all(map(of_display, xids)):
        return f"the display failed (Xid {numbers}), which no training uses"
    if not ended:
        return f"{codes(xids)}, for which NVIDIA asks nothing now"
    return f"a program failed (Xid {numbers}), usually not the hardware"
