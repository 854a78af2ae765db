"""Machines with an unusual property."""

from dataclasses import replace

from helpers import nvml_library as nvml
from helpers.machines.description import NO_P2P, Description, describe, epyc_slots
from helpers.machines.healthy import a100_nvlink
from helpers.trees import Slot, Tree


def l4_two_one_x1() -> Description:
    """Two L4 in P0. One has a single PCIe lane, and the minor numbers are in reverse order."""
    slots = epyc_slots(("41", "c1"), device="27b8", generation=4, generation_max=4)
    slots[1] = replace(slots[1], width=1)
    gpus = [nvml.l4(minor_number=1), nvml.l4(minor_number=0, pcie_width=1)]
    return describe(gpus, slots, Tree(minors=(0, 1)))


def mig_on() -> Description:
    """Four A100 with MIG. NVML then reports no volatile ECC counts, remapped rows and utilisation."""
    hidden = ("ecc_corrected_volatile", "ecc_uncorrected_volatile", "remapped_rows_correctable", "utilization_gpu")
    lines: dict[str, int | str] = {"gpu.*.mig_mode": 1}
    for gpu in range(4):
        lines |= {f"gpu.{gpu}.mig_mode": 1, f"gpu.{gpu}.mig_mode_pending": 1}
        lines |= {f"gpu.{gpu}.{fact}": "-" for fact in hidden}
    machine = a100_nvlink()
    return Description(nvml=machine.nvml.also(lines), tree=machine.tree)


def vgpu() -> Description:
    """A virtual machine with two vGPUs, without bridges, NUMA nodes and many other facts."""
    told = (
        *("name", "compute_capability", "architecture", "memory_total", "memory_used", "memory_reserved"),
        *("performance_state", "compute_mode", "persistence_mode", "utilization_gpu"),
        *("utilization_memory", "addressing_mode"),
    )
    full = nvml.a100(name="NVIDIA A100-40C", memory_total=40960 * 1024**2)
    gpu = {name: full[name] for name in told} | {"virtualization_mode": 2, "mig_mode": "-"}
    slots = [Slot(path=f"00:0{place}.0", node=None, device="20b5", generation=None, width=None) for place in (5, 6)]
    tree = Tree(sockets=1, cpus=16, memory_bytes=128 * 1024**3)
    return describe([gpu, gpu], slots, tree, lines=NO_P2P)


def one_gpu_lost() -> Description:
    """Four A100. GPU 2 has fallen off the bus: the kernel log has an Xid, and the links to it are down."""
    machine = a100_nvlink()
    slots = list(machine.tree.slots)
    lost = slots[2] = replace(slots[2], lost=True)
    lines = {
        f"gpu.{gpu}.nvlink.{link}.active": 0
        for gpu, first in ((0, 4), (1, 4), (3, 8))  # the first link to GPU 2
        for link in range(first, first + 4)
    }
    log = (
        f"NVRM: GPU at PCI:{lost.bus_id[:-2]}: GPU-00000002-0000-4000-8000-000000000000",
        f"NVRM: Xid (PCI:{lost.bus_id[:-2]}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        f"NVRM: GPU {lost.bus_id}: GPU has fallen off the bus.",
    )
    return Description(
        nvml=machine.nvml.also(lines).order("*", nvml.GPU_IS_LOST, gpu=2),
        tree=machine.tree.changed(slots=tuple(slots), log=log),
    )
