"""kdoctor's built-in probes (entry point ``kdoctor.probes``)."""

from kdoctor.probes import environment, host, interpreter, kernel, kernel_log, libraries, node, pci
from kdoctor.probes.nvml import probe as nvml
from kdoctor.probes.probe import Probe

PROBES: tuple[Probe, ...] = (
    interpreter.PROBE,
    libraries.PROBE,
    nvml.PROBE,
    kernel.PROBE,
    kernel_log.PROBE,
    pci.PROBE,
    environment.PROBE,
    host.PROBE,
    node.PROBE,
)
