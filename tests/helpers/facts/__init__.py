"""Builders of healthy fact groups. Every value can be overridden by keyword.

Example: ``compute_check(check, *h100_node(), host(shm_total_bytes=64 * MIB))``. A later group replaces an earlier one
of its type. The values are those of real machines: an H100 SXM5 node as reported by NVML, and the packages of a new
``tensorflow[and-cuda]==2.21.0``.
"""

from helpers.facts.base import DRIVER, GIB, MIB, PYTHON, SITE
from helpers.facts.gpus import (
    H100_LACKS,
    NOT_SUPPORTED,
    bus_id,
    geforce,
    geforces,
    gpu,
    gpus,
    lost_gpu,
    near,
    nvlinks,
    pair,
    v100,
)
from helpers.facts.host import host
from helpers.facts.kernel import kernel, kernel_settings, log, logged, node
from helpers.facts.nodes import cpu_host, h100_node, no_driver, v100_workstation
from helpers.facts.packages import environment, keras, package, packages, target, tensorflow
from helpers.facts.pci import bridge, pci, pci_gpu, way
from helpers.facts.sampling import case_use, event, gpu_use, idle_use, sampled_gpu, sampling, spread
from helpers.facts.smoke import pairs_run, smoke_case, smoke_run

__all__ = [
    "DRIVER",
    "GIB",
    "H100_LACKS",
    "MIB",
    "NOT_SUPPORTED",
    "PYTHON",
    "SITE",
    "bridge",
    "bus_id",
    "case_use",
    "cpu_host",
    "environment",
    "event",
    "geforce",
    "geforces",
    "gpu",
    "gpu_use",
    "gpus",
    "h100_node",
    "host",
    "idle_use",
    "keras",
    "kernel",
    "kernel_settings",
    "log",
    "logged",
    "lost_gpu",
    "near",
    "no_driver",
    "node",
    "nvlinks",
    "package",
    "packages",
    "pair",
    "pairs_run",
    "pci",
    "pci_gpu",
    "sampled_gpu",
    "sampling",
    "smoke_case",
    "smoke_run",
    "spread",
    "target",
    "tensorflow",
    "v100",
    "v100_workstation",
    "way",
]
