"""Reads what nvidia-smi prints when it fails: of a sick machine that is often all there is."""

from __future__ import annotations

import re

from kdoctor.facts.gpus import NvmlState
from kdoctor.importing.part import Part, Section

_STATES: tuple[tuple[re.Pattern[str], NvmlState], ...] = (
    (re.compile(r"couldn't communicate with the NVIDIA driver|Driver Not Loaded", re.IGNORECASE), "driver-not-loaded"),
    (re.compile(r"Driver/library version mismatch", re.IGNORECASE), "library-mismatch"),
    (re.compile(r"couldn't find libnvidia-ml|NVML Shared Library Not Found", re.IGNORECASE), "library-absent"),
    (re.compile(r"Insufficient Permissions", re.IGNORECASE), "no-permission"),
)
START = re.compile(
    r"NVIDIA-SMI (?:has failed|couldn't find)|Failed to initialize NVML|No devices were found"
    r"|Unable to determine the device handle for"
)


def parse(section: Section) -> Part:
    """The state of the driver, and nvidia-smi's words."""
    said = " ".join(" ".join(section.lines).split())[:300]
    if said.startswith("No devices were found"):
        return Part(kind="nvidia-smi's failure", file=section.file, driver={"state": "ready", "count": 0})
    state = next((state for pattern, state in _STATES if pattern.search(said)), "failed")
    return Part(kind="nvidia-smi's failure", file=section.file, driver={"state": state, "error": said})
