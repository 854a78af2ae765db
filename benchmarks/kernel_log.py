"""Read a kernel log of 100 MB five times, as the import does. ``write`` makes the log first.

``grep_log.py`` is the yardstick. The start of kdoctor counts, once in five readings.
"""

import random
import sys
from pathlib import Path

from kdoctor_recordings.importer import import_files

TIMES = 5
BYTES = 100 * 1024**2
OTHERS = (
    "usb 1-1: new high-speed USB device number {} using xhci_hcd",
    'audit: type=1400 audit(1700000000.{}:12): apparmor="STATUS" operation="profile_load"',
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth{}: link becomes ready",
    "docker0: port 1(veth{}) entered blocking state",
    "EXT4-fs (nvme0n1p{}): mounted filesystem with ordered data mode. Opts: (null)",
    "pci 0000:3b:00.{}: BAR 0: assigned [mem 0xc0000000-0xc0ffffff 64bit pref]",
)
XID = "NVRM: Xid (PCI:0000:3b:00): 31, pid={}, name=python"


def write(path: Path) -> None:
    """Write a log in which a program is at fault now and then."""
    if path.exists() and path.stat().st_size >= BYTES:
        return
    numbers = random.Random(1)  # noqa: S311 - nothing secret
    length, seconds = 0, 0.0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="ascii") as file:
        while length < BYTES:
            seconds += numbers.random() / 100
            text = XID if numbers.random() < 1e-5 else numbers.choice(OTHERS)  # noqa: PLR2004 - one in 100,000
            length += file.write(f"[{seconds:12.6f}] {text.format(numbers.randrange(9999))}\n")


def main() -> None:
    """Do what the first argument names with the file that the second one names."""
    what, path = sys.argv[1], Path(sys.argv[2])
    if what == "write":
        write(path)
        return
    for _ in range(TIMES):
        import_files([path])


main()
