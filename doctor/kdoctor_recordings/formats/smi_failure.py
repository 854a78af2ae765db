"""Reads what nvidia-smi prints when it fails, which is often the only output of a broken machine."""

import re
from collections.abc import Iterable

from kdoctor.facts.gpus import NvmlState
from kdoctor_recordings.formats.part import GpuPart, Part, Section, sysfs_bus_id

_WORDS: dict[NvmlState, str] = {
    "driver-not-loaded": (
        r"couldn't communicate with the NVIDIA driver|NVML\S*:? .*Driver Not Loaded|Error_DRIVER_?NOT_?LOADED"
        r"|NVIDIA kernel module missing"
    ),
    "library-mismatch": (
        r"Driver/library version mismatch|LIB_?RM_?VERSION_?MISMATCH|NVML/RM version mismatch"
        r"|unsupported display driver / cuda driver|kernel version \S+ does not match DSO version"
    ),
    "library-absent": (
        r"(?:couldn't find|library failed:) libnvidia-ml|NVML Shared Library Not Found|could not load NVML library"
        r"|ERROR_LIBRARY_NOT_FOUND|(?:libnvidia-ml\S*|nvidia-container-cli\S*: [\w ]+ error): cannot open"
        r"|Driver was not detected"
        r"|could not select device driver .*gpu|runtime name: nvidia|no runtime for \"nvidia|unresolvable CDI devices"
        r"|nvidia-smi: (?:(?:command )?not found|No such file)|command not found: nvidia-smi|'nvidia-smi' (?:not found"
        r"|is not recognized)|nvidia-smi ?: The term 'nvidia-smi' is not"
    ),
    "failed": r"cudaGetDeviceCount\(?\)? returned (?!0\b)\d+|/dev/+nvidia(?:\d+|ctl|\*)\S*:? No such file",
    "no-permission": (
        r"(?:NVML|device)\S*:? .*Insufficient Permissions|nvidia-container-cli\S*: .*operation not permitted"
    ),
}
"""What nvidia-smi, programs that use NVML, container runtimes and shells print, in any case of letters."""
LOST = re.compile(
    r".*?nable to \w+ the device handle for (?:gpu|GPU) ?(?P<index>\d+(?=:\s))?:?\s?"
    r"(?P<address>[0-9A-Fa-f]{3,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]): (?P<why>Unknown Error|[^./;。]+).*"
)
"""What nvidia-smi prints for a GPU that does not answer."""

_CONTAINER = re.compile(r"nvidia-container-cli\S*: ")
_INFOROM = re.compile(
    r".*WARNING: (?P<why>infoROM is corrupted) at gpu (?P<address>[\da-fA-F]{4,8}:[\da-fA-F]{2}:[\da-fA-F]{2}\.[0-7])"
)
"""What nvidia-smi prints below its output for a GPU whose infoROM fails the checksum."""
START = re.compile(
    r".*NVIDIA-SMI (?:has failed|couldn't find)|.*(?i:failed to initialize NVML)\b|No devices were found"
    r"|.*nvidia-container-cli\S*: [\w ]+ error: (?!.*unknown device)|.*nable to \w+ the device handle for"
    r"|.*(?:lstat|stat|open)\W+/dev/nvidia-uvm\W+no such file|.*[Cc]ould not load UVM kernel module"
    rf"|{_INFOROM.pattern}|(?i:.*(?:{'|'.join(_WORDS.values())}))"
)


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
    lines = section.lines if section.whole else section.lines[:-1]
    if gpus := (*filter(None, map(lost, lines)), *damaged(lines)):
        return section.part(gpus=gpus)
    message = " ".join(" ".join(section.lines).split())
    said = _CONTAINER.search(message)
    message = message[said.start() if said else 0 :][:300].rstrip(" `")
    if message.startswith("No devices were found"):
        return section.part(driver={"state": "ready", "count": 0})
    state = next((state for state, words in _WORDS.items() if re.search(words, message, re.IGNORECASE)), "failed")
    return section.part(driver={"state": state, "error": message})
