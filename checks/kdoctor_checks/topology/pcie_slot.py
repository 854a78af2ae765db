from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Remedy, Severity
from kdoctor_checks._gpus import DRIVER, judge, readings
from kdoctor_checks.topology._pcie import read_links


@check("topology.pcie-slot", severity=Severity.INFO, needs_gpus=True, requires=DRIVER)
def pcie_slot(gpus: Gpus) -> Iterator[Outcome]:
    """PCIe slots support the generation of their GPUs.

    Why: an older host, a riser or a firmware setting limits a GPU to a slower link. Many machines are built like this,
    so this is only a note. Check a GPU that once had a faster slot.
    Remedy: check risers, and the link speed of the slot in the firmware setup; or move the card to a faster slot.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "pcie_generation_max", "pcie_generation_gpu_max")
    yield from others
    slower = [gpu for gpu in judged if (gpu.pcie_generation_max or 0) < (gpu.pcie_generation_gpu_max or 0)]
    remedy = Remedy.inspect(
        "Check risers, and the link speed of the slot in the firmware setup.", read_links(slower, "LnkCap:|LnkCap2:")[0]
    )
    for gpu in judged:
        yield judge(
            gpu.subject,
            f"the slot supports PCIe generation {gpu.pcie_generation_max}, the GPU {gpu.pcie_generation_gpu_max}",
            ok=gpu not in slower,
            expected=f"a slot with generation {gpu.pcie_generation_gpu_max}",
            remedy=remedy,
        )
