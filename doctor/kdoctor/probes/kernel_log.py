"""Reads GPU events from the kernel log.

Sources: https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg for the records of /dev/kmsg;
https://docs.nvidia.com/deploy/xid-errors/ for Xid lines. :mod:`kdoctor.probes.kernel_messages` has all other messages.
"""

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kdoctor.facts import Facts, KernelLog, KernelLogEvent, KernelLogKind, Unavailable
from kdoctor.probes.files import reason
from kdoctor.probes.kernel_lines import Line, split_line
from kdoctor.probes.kernel_messages import DRIVER_THREAD, FOREIGN, MESSAGES, RELEVANT, SIGNS
from kdoctor.probes.probe import Context, Probe

_BYTES = re.compile(r'"MESSAGE" ?: ?\[ ?\d')
"""A message of ``journalctl -o json`` that is not text, as its bytes."""
_RECORD_BYTES = 16 * 1024
"""Longer than any record of /dev/kmsg; reading one into a shorter buffer fails."""
_ALIKE = 50
"""The maximum number of events of one kind, device and code: a fault can fill the whole log."""
_MOST_HARMLESS = 50_000
"""The number of different lines that are remembered."""
_BOOT_S = 0.001
"""A log whose first line is this soon after the boot, in seconds, begins with the boot."""

_ADDRESS = (
    r"(?:(?P<domain>[0-9a-fA-F]{4,8}):)?(?P<bus>[0-9a-fA-F]{2}):(?P<device>[0-9a-fA-F]{2})(?:\.(?P<function>[0-7]))?"
)
# With MIG, the address is followed by the instance: "0000:01:00 GPU-I:05".
_CODED: tuple[tuple[KernelLogKind, re.Pattern[str]], ...] = (
    (
        "xid",
        re.compile(
            rf"NVRM: (?:GPU at \S+ )?Xid \((?:(?:PCI:)?{_ADDRESS}(?: GPU-I:(?P<instance>\w+))?|[^\d()]*)\): "
            r"(?P<code>\d{1,9})"
        ),
    ),
    ("sxid", re.compile(rf"SXid \((?:PCI:)?{_ADDRESS}\): (?P<code>\d{{1,9}})")),
)
_RECOVERY = re.compile(r"(?:recovery action changed .*\bto\b[^(]*|\bXid 154 )\((?P<words>[^)]*)\)", re.IGNORECASE)
_ACTION = re.compile(
    r"(?:recovery action|\bXid 154).*\b(?P<words>None|GPU Reset|Node Reboot|Drain P2P|Drain and Reset)\b", re.IGNORECASE
)
"""The same in other words, the last of which counts."""
_GPU_NAMED = re.compile(rf"NVRM: The NVIDIA GPU (?:at )?(?:PCI:)?{_ADDRESS}")
_OF_X = re.compile(r"\bPCI:(\d{1,3}):(\d{1,2}):([0-7])\b")
"""An address of the X server, in decimal."""
_FRAME = re.compile(r"^(?:\[<\w+>\] )?(?:\? )?[\w.]+\+0x[\da-f]+/0x[\da-f]+ \[nvidia\w*\]")
"""A line of a stack in NVIDIA's driver."""
_STACK = 60
"""Lines of a stack, at most."""
_LONGEST_MESSAGE = 500
_TASK = re.compile(rf"\bComm: {DRIVER_THREAD}")
"""The line of a crash that names the task."""
_GPU_FOUND = re.compile(rf"^pci {_ADDRESS}: \[10de:[\da-f]{{4}}\] type 00 class 0x03")
_REGION = re.compile(
    rf"^[\w-]+ {_ADDRESS}: BAR (?P<bar>[0-5])\b(?!.*\[io ).*(?P<end>assigned|to assign|no space|t assign)"
)
"""Whether the kernel found address space for a region of memory of a device. Of several lines the last one counts."""
_ASSIGNED = ": assigned"
"""It says so of every device of a machine. Only a region for which it found none before is of interest."""
_ANY_ADDRESS = re.compile(rf"(?:(?<![\w:.])|(?<=PCI:)){_ADDRESS}(?!\w|:\w)")


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
    log = parse_log(lines, source="/dev/kmsg", complete=complete)
    return {KernelLog: replace(log, until_s=time.monotonic()) if context.root == Path("/") else log}


def _read(path: Path) -> tuple[list[str], bool | None]:
    """All lines, and whether they begin with the boot."""
    if not stat.S_ISCHR(path.stat().st_mode):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    else:
        lines = [line for record in _records(path) for line in record.splitlines()]
    first = split_line(lines[0]).sequence if lines else None
    return lines, None if first is None else first == 0


def _records(path: Path) -> Iterator[str]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield from _read_records(descriptor)
    finally:
        os.close(descriptor)


def _read_records(descriptor: int) -> Iterator[str]:
    """What the log has and was not read yet."""
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


class LogReader:
    """Reads a log line by line, or block by block, in constant memory."""

    def __init__(self) -> None:
        self.is_mixed = False
        """Whether blocks contain the output of other tools."""
        self._events: list[KernelLogEvent] = []
        self._alike: dict[tuple[KernelLogKind, str | None, int | None], tuple[int, int]] = {}
        """Kind, device and code to the place of the last event that was kept, and the number of all."""
        self._named: str | None = None
        self._first: Line | None = None
        self._hung: tuple[Line, int] | None = None
        """The last task that the kernel says to be blocked, and the number of the line: its stack follows."""
        self._begun = ""
        """The last line, if it is a message of the driver that says nothing by itself."""
        self._crash: int | None = None
        """The number of the line of the last crash: what describes it follows."""
        self._gpus: set[str | None] = set()
        """The addresses of NVIDIA's GPUs."""
        self._has_nvidia = False
        self._regions: dict[tuple[str | None, str], Line | None] = {}
        """Regions of memory that got no address space, with the line that says so; None if they got it later."""
        self._lines = 0
        self._unclassified = 0
        self._harmless: set[bytes] = set()
        """Lines without their digits and without a sign."""

    def read_block(self, block: bytes) -> None:
        """Read complete lines. Blocks in which no driver says anything are only counted."""
        alike = block.translate(None, b"0123456789").split(b"\n")
        if self._first is None or self._has_sign(alike) or (self._regions and _ASSIGNED.encode() in block):
            self.is_mixed = self.is_mixed or bool(FOREIGN.search(block))
            for line in block.decode("utf-8", "replace").splitlines():
                self.read(line)
        else:
            self._lines += len(alike) - 1
            self._named = None

    def _has_sign(self, lines: Sequence[bytes]) -> bool:
        """Whether a line may be a driver's. Without digits, those that differ in numbers only are searched once."""
        new = set(lines) - self._harmless
        text = b"\n".join(new)
        found = any(sign in text for sign in SIGNS)
        if len(self._harmless) > _MOST_HARMLESS:
            self._harmless.clear()
        self._harmless |= {line for line in new if not any(sign in line for sign in SIGNS)} if found else new
        return found

    def read(self, raw: str) -> None:
        """Read one line."""
        self._lines += 1
        if raw.startswith("{") and _BYTES.search(raw):
            raw = split_line(raw).text
        # A message of several lines may have its sign in the first one only.
        is_rest = bool(self._begun) and raw[:1].isspace() and "NVRM" not in raw
        raw = f"{self._begun} {raw.strip()}" if is_rest else raw
        self._begun = ""
        if not RELEVANT.search(raw) and not (self._regions and _ASSIGNED in raw):
            self._named = None
            if self._first is None and raw.strip():
                self._first = split_line(raw)
            return
        line = split_line(raw)
        self._first = self._first or line
        self._has_nvidia = self._has_nvidia or line.text.startswith("NVRM")
        found = _GPU_NAMED.search(line.text)
        self._named = _bus_id(found) if found else self._named
        if " blocked for more" in line.text or " state:D" in line.text:
            self._hung = line, self._lines
        if self._is_of_resources(line):
            return
        event = self._in_stack(line) if _FRAME.search(line.text) else _event(line, self._named)
        if _TASK.search(line.text) and self._crash and self._lines - self._crash < _STACK:
            event = KernelLogEvent(kind="driver-crash", text=line.text, boot_s=line.boot_s, time=line.time)
        if not event and line.text.startswith("NVRM: ") and len(raw) < _LONGEST_MESSAGE:
            self._begun = raw
        if event:
            self._add(event)
            self._crash = self._lines if event.kind == "crash" else self._crash
            self._gpus |= {event.bus_id} if line.text.startswith(("NVRM", "nvidia ")) else set()
        if "NVRM:" not in line.text:
            self._named = None

    def _is_of_resources(self, line: Line) -> bool:
        """Keep what the kernel says of a GPU that it finds, or of the regions of a device."""
        if found := _GPU_FOUND.match(line.text):
            self._gpus.add(_bus_id(found))
        elif found := _REGION.match(line.text):
            self._regions[_bus_id(found), found["bar"]] = None if found["end"] == "assigned" else line
            self._gpus |= {_bus_id(found)} if line.text.startswith("nvidia ") else set()
        return found is not None

    def _without_space(self) -> Iterator[KernelLogEvent]:
        """The GPUs that got no address space."""
        lines = {bus_id: line for (bus_id, _), line in self._regions.items() if line and bus_id in self._gpus - {None}}
        for bus_id, line in lines.items():
            kind: KernelLogKind = "no-address-space"
            yield KernelLogEvent(kind=kind, text=line.text, bus_id=bus_id, boot_s=line.boot_s, time=line.time)

    def _in_stack(self, line: Line) -> KernelLogEvent | None:
        """The event of a task that waits in NVIDIA's driver, at the first such line of its stack."""
        hung, place = self._hung or (line, -_STACK)
        self._hung = None
        within = self._lines - place < _STACK
        return (
            KernelLogEvent(kind="driver-hang", text=hung.text, boot_s=hung.boot_s, time=hung.time) if within else None
        )

    def _add(self, event: KernelLogEvent) -> None:
        self._unclassified += event.kind == "unclassified"
        key = (event.kind, event.bus_id, event.code)
        place, count = self._alike.get(key, (0, 0))
        if count < _ALIKE:
            place = len(self._events)
            self._events.append(event)
        self._alike[key] = (place, count + 1)

    def log(self, *, source: str, complete: bool | None = None) -> KernelLog:
        """What was read.

        Args:
            source: where the log was read, for the facts.
            complete: whether it reaches back to the boot; None to conclude it from the first line.
        """
        first = self._first or Line(text="")
        from_boot = first.text.startswith("Linux version") or (first.boot_s is not None and first.boot_s < _BOOT_S)
        for place, count in self._alike.values():
            if count > _ALIKE:
                self._events[place] = replace(self._events[place], times=count - _ALIKE + 1)
        # Next to NVIDIA's module, nouveau has the GPU of a display.
        foreign = ("not-probed", "nouveau") if self._has_nvidia else ()
        events = [one for one in self._events if (one.kind, one.text.split(maxsplit=1)[0]) != foreign]
        return KernelLog(
            source=source,
            lines=self._lines,
            complete=complete if complete is not None else from_boot or None,
            unclassified=self._unclassified,
            events=(*self._without_space(), *_placed(events)),
        )


def _placed(events: Sequence[KernelLogEvent]) -> Iterator[KernelLogEvent]:
    """The events without the kernel's announcement of a crash that a line about it places in NVIDIA's driver."""
    crashes = [event.kind for event in events if event.kind in ("crash", "driver-crash")]
    for event in events:
        if event.kind in ("crash", "driver-crash"):
            del crashes[0]
        if not (event.kind == "crash" and crashes[:1] == ["driver-crash"]):
            yield event


def parse_log(lines: Iterable[str], *, source: str, complete: bool | None = None) -> KernelLog:
    """The GPU events of a log, in any of the usual formats.

    Args:
        lines: the log: records of /dev/kmsg, or the output of dmesg, journalctl or syslog.
        source: where the log was read, for the facts.
        complete: whether it reaches back to the boot; None to conclude it from the first line.
    """
    reader = LogReader()
    for line in lines:
        reader.read(line)
    return reader.log(source=source, complete=complete)


def _event(line: Line, named: str | None) -> KernelLogEvent | None:
    """The event of a line; ``named`` is the GPU of the lines just before it."""
    for kind, pattern in _CODED:
        found = pattern.search(line.text)
        if found:
            recovery = _RECOVERY.search(line.text) or _ACTION.search(line.text)
            return KernelLogEvent(
                kind=kind,
                text=line.text,
                bus_id=_bus_id(found),
                code=int(found["code"]),
                instance=found.groupdict().get("instance"),
                recovery=recovery["words"] if recovery else None,
                boot_s=line.boot_s,
                time=line.time,
            )
    matches = ((message.kind, found) for message in MESSAGES if (found := message.pattern.search(line.text)))
    of_message, match = next(matches, (None, None))
    if of_message is None or match is None:
        return None
    text = _OF_X.sub(lambda at: f"PCI:{int(at[1]):02x}:{int(at[2]):02x}.{at[3]}", line.text)
    addresses = list(_ANY_ADDRESS.finditer(text))
    # Of several addresses (a port that reports another device's error) the last one is the faulty device's. A port that
    # reports an error it has itself corrected names a device 0000:00:00.0 that is none.
    places = [place for place in map(_bus_id, addresses) if place != "0000:00:00.0"]
    bus_id = places[-1] if places else named if "NVRM:" in line.text else None
    named_by = match.groupdict()
    return KernelLogEvent(
        kind=of_message,
        text=line.text,
        bus_id=bus_id,
        library=named_by.get("library"),
        program=named_by.get("program"),
        boot_s=line.boot_s,
        time=line.time,
    )


def _bus_id(found: re.Match[str]) -> str | None:
    """The address in sysfs form, if there is one; the kernel may omit domain 0000, and NVIDIA the function."""
    if not found["bus"]:
        return None
    domain = int(found["domain"] or "0", 16)
    return f"{domain:04x}:{found['bus']}:{found['device']}.{found['function'] or '0'}".lower()


class KernelLogTail:
    """The lines that the kernel logs from now on.

    Raises:
        OSError: the log cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = LogReader()
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(self._descriptor, 0, os.SEEK_END)

    def read(self) -> KernelLog:
        """Everything since the beginning of the tail. Returns at once if there is nothing new."""
        for record in _read_records(self._descriptor):
            for line in record.splitlines():
                self._reader.read(line)
        return self._reader.log(source=str(self._path), complete=False)

    def close(self) -> None:
        """Close the log."""
        os.close(self._descriptor)


PROBE = Probe(name="kernel log", provides=(KernelLog,), collect=collect, deadline_s=10)
