"""The machines from which facts are taken."""

from functools import cache

from helpers import machines
from helpers.evidence.comparing import Table
from helpers.extensions import facts_of_extensions
from helpers.facts import cpu_host, geforces, gpu, gpus, h100_node, host, kernel, lost_gpu, pci, v100_workstation
from helpers.facts.base import GIB
from kdoctor.facts import FactGroup
from kdoctor.model import Assumptions, GpuAssumption
from kdoctor.testing import fact_table

STATED = Assumptions(
    python=">=3.10,<3.14",
    packages={"tensorflow": "~=2.21.0"},
    gpus=GpuAssumption(count=8, model="NVIDIA H100*"),
    environment={"NCCL_P2P_DISABLE": "unset"},
    framework={"tensorflow": "~=2.21.0", "keras": "~=3.15", "flavour": "keras", "backend": "tensorflow"},
    sdk={"cuda": "~=12.5"},
    driver=">=580",
    libraries={"cudnn": ">=9.3"},
    flags={"keras.floatx": "float32"},
    image="job/train:*",
)

HOST = host(image="job/train:2", image_from="KDOCTOR_IMAGE")
MACHINE = (*h100_node(8), HOST, *facts_of_extensions("WHOLE"))

_BAD = {
    "clock_event_reasons": (0x40, 0x40),
    "temperature_margin_c": 1,
    "memory_used_bytes": 9 * GIB,
    "pcie_width": 4,
    "ecc_uncorrected_volatile": 3,
}

DESCRIBED = ("a100-pcie", "one-gpu-lost", "l4-one-x1", "mig-on")
"""Machines that the real probes read."""


@cache
def table(name: str) -> Table:
    """The facts of a machine."""
    if name in DESCRIBED:
        return {**fact_table(*h100_node(8), scenario="smoke.baseline"), **machines.facts(name)}
    healthy = h100_node(8)
    facts: dict[str, tuple[FactGroup, ...]] = {
        "h100": MACHINE,
        "v100": (*healthy, *v100_workstation()),
        "geforce": (*healthy, geforces(2), pci(2), kernel(2)),
        "cpu": cpu_host(),
        "lost-gpu": (*healthy, gpus(8, *(lost_gpu(3) if index == 3 else gpu(index) for index in range(8)))),
        "bad-gpu": (*healthy, gpus(8, *(gpu(index, **(_BAD if index == 4 else {})) for index in range(8)))),
    }
    return fact_table(*facts[name], scenario="smoke.baseline")


BUILT = ("h100", "v100", "geforce", "cpu", "lost-gpu", "bad-gpu")
