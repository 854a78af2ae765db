"""The probes that come with kdoctor (entry point ``kdoctor.probes``)."""

from __future__ import annotations

from kdoctor.collect import environment, host, interpreter, kernel, kernel_log, libraries, nvml, pci
from kdoctor.collect.probe import Probe

PROBES: tuple[Probe, ...] = (
    interpreter.PROBE,
    libraries.PROBE,
    nvml.PROBE,
    kernel.PROBE,
    kernel_log.PROBE,
    pci.PROBE,
    environment.PROBE,
    host.PROBE,
)
