"""Reads what nvidia-smi prints when it fails, which is often the only output of a broken machine."""

import re
from collections.abc import Iterable

from kdoctor.facts.gpus import NvmlState
from kdoctor_recordings.formats.part import GpuPart, Part, Section, sysfs_bus_id

_MISSING = re.compile(
    r"(?:[\w./-]+: )*nvidia-smi: (?:command not found|not found|No such file or directory)"
    r"|[\w./-]+: (?:line )?\d+: (?:[\w./-]+/)?nvidia-smi: (?:command )?not found|zsh: command not found: nvidia-smi"
    r"|Command 'nvidia-smi' not found|'nvidia-smi' is not recognized as|nvidia-smi ?: The term 'nvidia-smi' is not"
    r"|(?:[\w./-]+: )*(?:/[\w.-]+)+/nvidia-smi: No such file or directory",
    re.IGNORECASE,
)
"""What shells print if there is no nvidia-smi."""
_STATES: tuple[tuple[re.Pattern[str], NvmlState], ...] = (
    (re.compile(r"couldn't communicate with the NVIDIA driver|Driver Not Loaded", re.IGNORECASE), "driver-not-loaded"),
    (re.compile(r"Driver/library version mismatch", re.IGNORECASE), "library-mismatch"),
    (
        re.compile(
            r"couldn't find libnvidia-ml|library failed: libnvidia-ml|NVML Shared Library Not Found", re.IGNORECASE
        ),
        "library-absent",
    ),
    (re.compile(r"Insufficient Permissions", re.IGNORECASE), "no-permission"),
    (_MISSING, "library-absent"),
)
START = re.compile(
    r"NVIDIA-SMI (?:has failed|couldn't find)|.*(?i:failed to initialize NVML)\b|No devices were found"
    r"|.*nvidia-container-cli: [\w ]+ error: "
    r"|.*Unable to determine the device handle for|(?i:" + _MISSING.pattern + ")"
)
LOST = re.compile(
    r".*?Unable to determine the device handle for (?:gpu|GPU) ?(?P<index>\d+(?=:\s))?:?\s?"
    r"(?P<address>[0-9A-Fa-f]{3,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]): (?P<why>[^./;]+).*"
)
"""What nvidia-smi prints for a GPU that does not answer."""

_INFOROM = re.compile(
    r"WARNING: (?P<why>infoROM is corrupted) at gpu (?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])"
)
"""What nvidia-smi prints below its output for a GPU whose infoROM fails the checksum."""


def damaged(lines: Iterable[str]) -> tuple[GpuPart, ...]:
    """The GPUs with a corrupted infoROM according to these lines."""
    found = filter(None, map(_INFOROM.match, lines))
    return tuple(GpuPart(bus_id=sysfs_bus_id(line["address"]), errors={"inforom": line["why"]}) for line in found)


def is_about_gpu(line: str) -> bool:
    """Whether nvidia-smi prints this line about a GPU below or in its output."""
    return bool(LOST.match(line) or _INFOROM.match(line))


def lost(line: str) -> GpuPart | None:
    """The GPU that does not answer according to this line, and why."""
    found = LOST.match(line)
    if not found:
        return None
    return GpuPart(
        index=int(found["index"]) if found["index"] else None,
        bus_id=sysfs_bus_id(found["address"]),
        errors={"handle": found["why"].strip()},
    )


def parse(section: Section) -> Part:
    """The state of the driver, with nvidia-smi's message."""
    gone = [gpu for gpu in map(lost, section.lines if section.whole else section.lines[:-1]) if gpu]
    if gone:
        return section.part(gpus=tuple(gone))
    message = " ".join(" ".join(section.lines).split())
    message = message[max(message.find("nvidia-container-cli: "), 0) :][:300].rstrip(" `")
    if message.startswith("No devices were found"):
        return section.part(driver={"state": "ready", "count": 0})
    state = next((state for pattern, state in _STATES if pattern.search(message)), "failed")
    return section.part(driver={"state": state, "error": message})
