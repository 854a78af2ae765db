"""Reads GPU events from the kernel log.

Sources: https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg for the records of /dev/kmsg;
https://docs.nvidia.com/deploy/xid-errors/ for Xid lines; the kernel's sources for lines of the IOMMU, AER and the
module loader (drivers/iommu, drivers/pci/pcie/aer.c, kernel/module/signing.c).
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kdoctor.facts import Facts, KernelLog, KernelLogEvent, KernelLogKind, Unavailable
from kdoctor.probes.files import reason
from kdoctor.probes.probe import Context, Probe

_RECORD_BYTES = 16 * 1024
"""Longer than any record of /dev/kmsg; reading one into a shorter buffer fails."""
_ALIKE = 50
"""The maximum number of events of one kind, device and code: a fault can fill the whole log."""

_ADDRESS = (
    r"(?:(?P<domain>[0-9a-fA-F]{4,8}):)?(?P<bus>[0-9a-fA-F]{2}):(?P<device>[0-9a-fA-F]{2})(?:\.(?P<function>[0-7]))?"
)

_KMSG = re.compile(r"^\d+,(?P<sequence>\d+),(?P<microseconds>\d+),[^;]*;(?P<text>.*)$")
_PREFIXES = (
    re.compile(r"^(?:kern\s*:\w+\s*: )?\[\s*(?P<boot>\d+\.\d+)\]\s?(?P<text>.*)$"),
    re.compile(r"^(?:kern\s*:\w+\s*: )?\[(?P<time>\w{3} \w{3}\s+\d+ [\d:]{8} \d{4})\]\s?(?P<text>.*)$"),
    re.compile(
        r"^(?P<time>\d{4}-\d\d-\d\dT[\d:]{8}(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?) "
        r"(?:\S+ kernel: )?(?:\[\s*(?P<boot>\d+\.\d+)\] )?(?P<text>.*)$"
    ),
    re.compile(r"^(?P<time>\w{3}\s+\d+ [\d:]{8}) \S+ kernel: (?:\[\s*(?P<boot>\d+\.\d+)\] )?(?P<text>.*)$"),
)
"""Line prefixes of dmesg (plain, ``-x``, ``-T``, ``--time-format iso``), journalctl and syslog."""

# With MIG, the address is followed by the instance: "0000:01:00 GPU-I:05".
_CODED: tuple[tuple[KernelLogKind, re.Pattern[str]], ...] = (
    ("xid", re.compile(rf"NVRM: (?:GPU at \S+ )?Xid \((?:PCI:)?{_ADDRESS}(?: GPU-I:\d+)?\): (?P<code>\d+)")),
    ("sxid", re.compile(rf"SXid \((?:PCI:)?{_ADDRESS}\): (?P<code>\d+)")),
)
_RECOVERY = re.compile(r"recovery action changed .*\bto\b[^(]*\((?P<words>[^)]*)\)", re.IGNORECASE)
_GPU_NAMED = re.compile(rf"NVRM: The NVIDIA GPU (?:at )?(?:PCI:)?{_ADDRESS}")
_ANY_ADDRESS = re.compile(rf"(?<![\w:.]){_ADDRESS}(?![\w:])")

_KINDS: tuple[tuple[KernelLogKind, re.Pattern[str]], ...] = (
    ("fallen-off-the-bus", re.compile(r"fallen off the bus")),
    (
        "iommu-fault",
        re.compile(r"DMAR: \[.*Request device|AMD-Vi: Event logged \[IO_PAGE_FAULT|arm-smmu\S* .*[Ff]ault"),
    ),
    ("init-failed", re.compile(r"NVRM: .*(?:RmInitAdapter failed|rm_init_adapter failed|probe routine failed)")),
    ("hmm-failed", re.compile(r"request_free_mem_region\S*.*err(?:or)? -?\d+")),
    ("version-mismatch", re.compile(r"NVRM: API mismatch|NVRM: .*this kernel module has the version")),
    (
        "module-rejected",
        re.compile(
            r"Loading of (?:unsigned module|module with (?:unsupported crypto|unavailable key)) is rejected"
            r"|Lockdown: .*unsigned module loading is restricted"
        ),
    ),
    (
        "gsp-failed",
        re.compile(r"NVRM: .*(?:_?kgsp\w+|\bGSP\b).*(?:fail|time[ds]? ?-?out|not respond|hung|cannot)", re.IGNORECASE),
    ),
    ("pcie-error", re.compile(r"AER: .*error|PCIe Bus Error: ")),
    ("reset-required", re.compile(r"NVRM: .*(?i:NV_ERR_RESET_REQUIRED|reset required)")),
    ("uvm-fatal", re.compile(r"uvm encountered (?:global )?fatal error")),
    ("not-probed", re.compile(r"NVRM: (?:.*probe routine was not called for|No NVIDIA .*probed)")),
    (
        "unclassified",
        re.compile(
            r"(?:NVRM:|nvidia-(?:uvm|peermem|nvlink|modeset)\b|nouveau \S+: ).*"
            r"(?i:Xid|error|fail|fatal|assert|corrupt|time[ds]? ?-?out|unable|cannot|invalid|reject|refus)"
        ),
    ),
)
"""Kinds of lines other than Xid and SXid. The first match counts, so the most specific come first."""


def collect(context: Context) -> Facts:
    """The kernel log; unavailable without permission to read it (``kernel.dmesg_restrict``, containers)."""
    path = context.root / "dev/kmsg"
    try:
        lines, complete = _read(path)
    except FileNotFoundError:
        return {KernelLog: Unavailable(unavailable="the kernel log cannot be read: /dev/kmsg does not exist")}
    except PermissionError as error:
        why = f"no permission to read the kernel log: {reason(error)} (kernel.dmesg_restrict)"
        return {KernelLog: Unavailable(unavailable=why)}
    except OSError as error:
        return {KernelLog: Unavailable(unavailable=f"the kernel log cannot be read: {reason(error)}")}
    return {KernelLog: parse_log(lines, source="/dev/kmsg", complete=complete)}


def _read(path: Path) -> tuple[list[str], bool | None]:
    """All lines, and whether they begin with the boot."""
    if not stat.S_ISCHR(path.stat().st_mode):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    else:
        lines = [line for record in _records(path) for line in record.splitlines()]
    first = _KMSG.match(lines[0]) if lines else None
    return lines, first["sequence"] == "0" if first else None


def _records(path: Path) -> Iterator[str]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while True:
            try:
                record = os.read(descriptor, _RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue  # the record was overwritten during the read; the next read continues after it
            if not record:
                return
            # A multi-line message is one record, with escaped line feeds.
            yield record.decode("utf-8", "replace").replace("\\x0a", "\n")
    finally:
        os.close(descriptor)


def parse_log(lines: Iterable[str], *, source: str, complete: bool | None = None) -> KernelLog:
    """The GPU events of a log, in any of the usual formats.

    Args:
        lines: the log: records of /dev/kmsg, or the output of dmesg, journalctl or syslog.
        source: where the log was read, for the facts.
        complete: whether it reaches back to the boot; None if unknown.
    """
    events: list[KernelLogEvent] = []
    alike: Counter[tuple[KernelLogKind, str | None, int | None]] = Counter()
    named: str | None = None
    count = 0
    for raw in lines:
        count += 1
        line = _split(raw)
        found = _GPU_NAMED.search(line.text)
        named = _bus_id(found) if found else named
        event = _event(line, named)
        if event:
            alike[event.kind, event.bus_id, event.code] += 1
            if alike[event.kind, event.bus_id, event.code] <= _ALIKE:
                events.append(event)
        if "NVRM:" not in line.text:
            named = None
    return KernelLog(source=source, lines=count, complete=complete, events=tuple(events))


@dataclass(frozen=True, kw_only=True)
class _Line:
    text: str
    boot_s: float | None = None
    time: str | None = None


def _split(raw: str) -> _Line:
    record = _KMSG.match(raw)
    if record:
        return _Line(text=record["text"], boot_s=int(record["microseconds"]) / 1e6)
    for prefix in _PREFIXES:
        found = prefix.match(raw)
        if found:
            parts = found.groupdict()
            boot = parts.get("boot")
            return _Line(text=found["text"], boot_s=float(boot) if boot else None, time=parts.get("time"))
    return _Line(text=raw.strip())


def _event(line: _Line, named: str | None) -> KernelLogEvent | None:
    """The event of a line; ``named`` is the GPU of the lines just before it."""
    for kind, pattern in _CODED:
        found = pattern.search(line.text)
        if found:
            recovery = _RECOVERY.search(line.text)
            return KernelLogEvent(
                kind=kind,
                text=line.text,
                bus_id=_bus_id(found),
                code=int(found["code"]),
                recovery=recovery["words"] if recovery else None,
                boot_s=line.boot_s,
                time=line.time,
            )
    for kind, pattern in _KINDS:
        if pattern.search(line.text):
            addresses = list(_ANY_ADDRESS.finditer(line.text))
            # Of several addresses (a port that reports another device's error) the last one is the faulty device's.
            bus_id = _bus_id(addresses[-1]) if addresses else named if "NVRM:" in line.text else None
            return KernelLogEvent(kind=kind, text=line.text, bus_id=bus_id, boot_s=line.boot_s, time=line.time)
    return None


def _bus_id(found: re.Match[str]) -> str:
    """The address in sysfs form; the kernel may omit domain 0000, and NVIDIA the function."""
    domain = int(found["domain"] or "0", 16)
    return f"{domain:04x}:{found['bus']}:{found['device']}.{found['function'] or '0'}".lower()


PROBE = Probe(name="kernel log", provides=(KernelLog,), collect=collect, deadline_s=10)
