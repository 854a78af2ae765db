from kdoctor.facts import Gpu
from kdoctor.model import Remedy, Severity
from kdoctor_checks.gpu._flags import gpu_flag
from kdoctor_checks.topology._pcie import read_links


@gpu_flag(
    "topology.pcie-slot",
    "pcie_generation_max",
    "pcie_generation_gpu_max",
    severity=Severity.INFO,
    bad=lambda gpu: (gpu.pcie_generation_max or 0) < (gpu.pcie_generation_gpu_max or 0),
    expected=lambda gpu: f"a slot with generation {gpu.pcie_generation_gpu_max}",
    remedy=lambda slower, _: Remedy.inspect(
        "Check risers, and the link speed of the slot in the firmware setup.", read_links(slower, "LnkCap:|LnkCap2:")[0]
    ),
)
def pcie_slot(gpu: Gpu) -> str:
    """PCIe slots support the generation of their GPUs.

    Why: an older host, a riser or a firmware setting limits a GPU to a slower link. Many machines are built like this,
    so this is only a note. Check a GPU that once had a faster slot.
    Remedy: check risers, and the link speed of the slot in the firmware setup; or move the card to a faster slot.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    return f"the slot supports PCIe generation {gpu.pcie_generation_max}, the GPU {gpu.pcie_generation_gpu_max}"
