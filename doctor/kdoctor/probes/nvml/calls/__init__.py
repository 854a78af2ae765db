"""Which NVML call reads which fact, and how its answer becomes one. For the processes that talk to NVML alone.

Source: https://docs.nvidia.com/deploy/nvml-api/ for calls, units, field ids and what a return code means.
"""

from kdoctor.probes.nvml.calls.answers import Failure, Read, code, error_name
from kdoctor.probes.nvml.calls.links import links
from kdoctor.probes.nvml.calls.one_gpu import FIELDS, JOINT, clock_event_reasons
from kdoctor.probes.nvml.calls.pairs import PAIR_FIELDS, SYSTEM_FIELDS

__all__ = [
    "FIELDS",
    "JOINT",
    "PAIR_FIELDS",
    "SYSTEM_FIELDS",
    "Failure",
    "Read",
    "clock_event_reasons",
    "code",
    "error_name",
    "links",
]
