"""Whole machines, described by the project: what NVML answers, and the /sys, /proc and /dev that go with it.

``facts("h100-nvswitch")`` gives their facts, collected by the real probes; ``environment("h100-nvswitch", folder)``
lets the real command line run against one in a subprocess. Each needs the system's C compiler, and skips without.
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
