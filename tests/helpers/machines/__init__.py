"""Descriptions of whole machines: the answers of NVML, and the matching /sys, /proc and /dev.

``facts("h100-nvswitch")`` returns the facts that the real probes collect. ``environment("h100-nvswitch", folder)``
returns the variables for a real command line in a subprocess. Both skip the test without a C compiler.
"""

from helpers.machines.collecting import HEALTHY, MACHINES, collected, environment, facts, gpus, groups, library, write
from helpers.machines.description import Description, describe
from helpers.machines.healthy import a100_nvlink, h100_nvswitch
from helpers.machines.peculiar import l4_two_one_x1

__all__ = [
    "HEALTHY",
    "MACHINES",
    "Description",
    "a100_nvlink",
    "collected",
    "describe",
    "environment",
    "facts",
    "gpus",
    "groups",
    "h100_nvswitch",
    "l4_two_one_x1",
    "library",
    "write",
]
