"""Separates the message of a kernel log line from everything that tools write before it.

Sources: https://man7.org/linux/man-pages/man1/dmesg.1.html and
https://www.freedesktop.org/software/systemd/man/latest/journalctl.html for the forms of time;
https://www.rfc-editor.org/rfc/rfc3164 and https://www.rfc-editor.org/rfc/rfc5424 for syslog;
https://docs.kernel.org/admin-guide/ABI/pstore for the dumps of a crashed kernel.
"""

import json
import re

from kdoctor.records import record

_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"
_ISO = rf"\d{{4}}-\d\d-\d\d[T_ ]{_CLOCK}(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
_SHORT = rf"(?:\b\w{{3,5}}\.? +\d{{1,2}}|\d{{1,2}}月 +\d{{1,2}}) {_CLOCK}"
_LONG = r"\w{1,5}\.? +\w{2,5}\.? +\d+ [\d:]{8} \d{4}"
"""``dmesg -T``. The names of days and months are those of a locale: ``Mon Jan``, ``lun. janv.``."""
_FULL = rf"\w{{2,3}} {_ISO}(?: [A-Z]{{3,5}})?"

ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[0-~])"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\ufeff\u200b]"
)
"""Sequences and characters that a terminal acts on and does not show."""

_DRIVER = (
    r"(?:NVRM: |NVRM (?!version)\w+: |(?!\S+ +\d+ +\d)nvidia[-_](?:uvm|peermem|nvlink|modeset|nvswitch\d*)\b"
    r"|(?!\S+ +\d+ +\d)nouveau )"
)
MODULE_FAILS = (
    r"(?:could not insert(?: module)?|Error inserting) \S*nvidia\S*(?: \(\S+\))?: "
    r"|modpost: .*nvidia"
    r"|nvidia: (?:version magic|disagrees about|Unknown symbol)"
    r"|(?:Consult )?/var/lib/dkms/nvidia|NV_\w+=.*bad exit status"
    r"|^(?=.*\b[Kk]ernel module\b)(?!.*NVRM).*(?:[fF]ailed to load|load error|not signed by)"
    r"|^(?=.*\bnvidia(?![-_](?!dkms|driver|kernel|open)[a-z]))(?!.*NVRM)"
    r"(?=.*(?i:\bdkms|modprobe|insmod|modules-load|kernel module ')).*"
    r"(?i:fail|error|\bunable|cannot|could not|bad (?:exit|return)|not found|rejected|denied)"
)
"""NVIDIA's module was not built or not loaded, in the words of DKMS, of the installer, of modprobe or of people."""
_QUICK = re.compile(
    r"\s*\[|[\s>|`*-]*(?:<\d|kern)|\d+,\d+,|.{0,80}\bkernel\b|\{.*\"MESSAGE\" ?:"
    r"|.*(?:NVRM: |nvidia[-_](?:uvm|peermem|nvlink|nvswitch)|nouveau |SXid|the NVIDIA GPU at)"
    r"|.{0,60}(?:\[ *\d+\.\d{6}|\[\w{1,5}\.? +\w{2,5}\.? +\d)"
)
"""What a line needs to have so that it can be the kernel's."""
_STARTS = re.compile(
    rf"{_DRIVER}|{MODULE_FAILS}|NVIDIA\(\S+\): Fail|\S+\[\d+\]: segfault at \w+ ip |traps: \S+\[\d+\] "
    r"|\S+ [\da-f:]+\.[0-7]: (?:AER|PCIe Bus Error|DPC): |EDAC \w+: |mce: \[Hardware|watchdog: BUG: "
    r"|BUG: (?:unable to handle|kernel NULL)|INFO: task \S+ blocked for more than "
)
_ANYWHERE = re.compile(
    r"NVRM: +(?=\S)|nvidia-nvswitch\d+: SXid \("
    rf"|NVIDIA\(\S+\): Failed to initialize the NVIDIA GPU at|{MODULE_FAILS}"
)
"""What only the driver or the X server writes, whatever is before it: fields of other tools, a sentence of a mail."""
_AFTER = " `\t\"'},|"
"""What other tools write after the message."""
_WITHOUT_COLON = re.compile(r"\bNVRM (?!version)(?=\w+: )")
"""How the first open kernel modules began a message."""
_FIELD = re.compile(r'"(?:MESSAGE|message|msg|log)" ?:')
"""The message in JSON: journalctl, and tools that collect logs."""
_WORDS = re.compile(
    r"NVRM|vfio-pci|segfault at|traps: |nvidia|[Kk]ernel module|NV_\w+=|\bpci\b|ACPI|Linux version|oom-kill"
    r"|Out of memory|AER: |PCIe Bus Error: |DPC: |EDAC |mce: |watchdog: |BUG: |INFO: task "
)

_KMSG = re.compile(r"(?:\d+,(?P<sequence>\d{1,19}),(?P<microseconds>\d{1,19}),[^;]*;)")
_PLACES = tuple(
    re.compile(pattern)
    for pattern in (
        r"[\s>|`*#]+",  # a quotation, a list, a heading, a table or code in a mail or in Markdown
        r"(?:/[\w./-]+|[\w.-]+\.log(?:\.\d+)?|syslog|messages|dmesg)(?::\d+)?[:-](?=\S)",  # grep -H
        r"\d+[:-](?=[\[<]|\w{3} +\d|\d{4}-)",  # grep -n
        r"- (?=[\[<]|\w{3} +\d|\d{4}-|NVRM: )",
        r"<\d{1,3}>(?:\d )?",  # dmesg -r, pstore, syslog
        r"(?:kern|user|daemon|auth|syslog)\s*[:.]\s*\w+\s*: ",  # dmesg -x, socklog
        r"\[ *[TC]\d+\] ?",  # CONFIG_PRINTK_CALLER
        r"\{\d+\}(?=\[Hardware Error\])",  # a record of APEI
        r"(?:MESSAGE=|\"(?:MESSAGE|msg)\" *: *\")",  # journalctl -o verbose, export and json-pretty; dmesg --json
    )
)
"""What other tools write before the time, or around the line."""
_TIMES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[ *(?P<boot>\d{1,12}\.\d{1,9})(?: *<[ \d.+]+>)?\] ?",  # dmesg, dmesg -d, journalctl -o short-monotonic
        rf"\[{_LONG}\] ?",  # dmesg -T
        r"\[ *(?:[+<] *[\d.]+>?|\w{3} ?\d{1,2} [\d:]{5,8})\] ?",  # dmesg -H, dmesg -d
        rf"{_FULL} ",
        rf"{_ISO} ",
        rf"{_SHORT} ",
        r"\d{10}\.\d{3,6} (?=\S+ kernel: )",  # journalctl -o short-unix
    )
)
_TIME_TEXT = re.compile(rf"{_FULL}|{_ISO}|{_LONG}|{_SHORT}")
_KERNEL = re.compile(r"(?:\S+ )?kernel(?:\[\d+\])?(?:: ?| - - (?:- )?)")
"""The host and the name of the kernel in syslog and journalctl."""
_ANY_KERNEL = re.compile(r".{0,60}?\d\d:\d\d:\d\d.{0,60}? kernel: ")
"""The same after a time in a locale that is not listed above."""
_MOST_PIECES = 12
_DECIMALS = 6
"""Digits of the kernel's time after the point. The X server writes three."""


@record
class Line:
    """A line of a log."""

    text: str
    """The message alone."""
    boot_s: float | None = None
    time: str | None = None
    sequence: int | None = None
    """Number of the record in /dev/kmsg."""
    marked: bool = False
    """Whether something before the message shows that the kernel wrote it."""


def split_line(raw: str) -> Line:
    """The message of a line in any of the usual forms."""
    record = _KMSG.match(raw)
    if record:
        seconds, number = int(record["microseconds"]) / 1e6, int(record["sequence"])
        return Line(text=raw[record.end() :], boot_s=seconds, sequence=number, marked=True)
    raw = ESCAPES.sub("", raw).rstrip("\r\n") if not raw.isprintable() else raw
    raw = _WITHOUT_COLON.sub("NVRM: ", raw) if "NVRM " in raw else raw
    if raw.startswith(("{", "data: {")) and _FIELD.search(raw):
        return _of_json(raw.removeprefix("data: "))
    boot: float | None = None
    time: str | None = None
    marked, is_field = False, bool(_FIELD.search(raw))
    for _ in range(_MOST_PIECES):
        length, piece_boot, is_marked, is_time = _piece(raw)
        if not length:
            break
        boot = piece_boot if piece_boot is not None else boot
        if is_time and time is None:
            found = _TIME_TEXT.search(raw[:length])
            time = found[0].strip() if found else None
        marked = marked or is_marked or (time is not None and raw.startswith("kernel: "))
        raw = raw[length:]
    found = None if _STARTS.match(raw) else _ANYWHERE.search(raw)
    text = raw[found.start() :] if found else raw
    text = text.rstrip(_AFTER if found or is_field else " `\t")
    return Line(text=text, boot_s=boot, time=time, marked=marked)


def is_kernels(raw: str) -> bool:
    """Whether only the kernel writes such a line. A date alone is not enough."""
    if not _QUICK.match(raw) and not _WORDS.search(raw):
        return False
    line = split_line(raw)
    return (line.marked and line.text != raw) or bool(
        _STARTS.match(line.text)
        or (line.time and _WORDS.search(line.text) and "T" in line.time and not line.text.startswith("<"))
    )


def _piece(raw: str) -> tuple[int, float | None, bool, bool]:
    """The length of the first piece that is not the message, its seconds since boot, and what kind it is."""
    for pattern in _TIMES:
        found = pattern.match(raw)
        if found:
            boot = found.groupdict().get("boot")
            is_kernel = raw.startswith("[") and (not boot or len(boot.partition(".")[2]) == _DECIMALS)
            return found.end(), float(boot) if boot else None, is_kernel, True
    found = _KERNEL.match(raw)
    if found:
        return found.end(), None, not raw.startswith("kernel"), False  # "kernel: 5.15" may be any list
    for pattern in _PLACES:
        found = pattern.match(raw)
        if found and found.end():
            return found.end(), None, found[0].startswith(("<", "kern")), False
    found = _ANY_KERNEL.match(raw)
    return (found.end(), None, True, True) if found else (0, None, False, False)


def _of_json(raw: str) -> Line:
    """A record of ``journalctl -o json``. A message that is not text is a list of bytes."""
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return Line(text=raw)
    message = next((record[name] for name in ("MESSAGE", "message", "msg", "log") if name in record), None)
    if isinstance(message, list):
        numbers = (item for item in message if isinstance(item, int) and item in range(256))
        message = bytes(numbers).decode("utf-8", "replace")
    boot = record.get("_SOURCE_MONOTONIC_TIMESTAMP") or record.get("__MONOTONIC_TIMESTAMP")
    inner = split_line(message) if isinstance(message, str) else Line(text="")
    return Line(
        text=inner.text,
        boot_s=int(boot) / 1e6 if isinstance(boot, str) and re.fullmatch(r"\d{1,19}", boot) else inner.boot_s,
        time=inner.time,
        marked=record.get("_TRANSPORT", "kernel" if "MESSAGE" in record else "") == "kernel",
    )
