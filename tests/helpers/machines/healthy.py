"""Healthy machines."""

from dataclasses import replace

from helpers import nvml_library as nvml
from helpers.machines.description import NO_NVLINK_P2P, NO_P2P, Description, describe, epyc_slots
from helpers.nvml_library import Facts
from helpers.trees import ACS_REDIRECT, Slot, Tree, nvml_bus_id

_H100_BUSES = (0x19, 0x3B, 0x4C, 0x5D, 0x9B, 0xBB, 0xCB, 0xDB)


def _sxm_slots(count: int) -> list[Slot]:
    """GPUs with one switch and one root complex each. Of eight GPUs, each socket has four."""
    return [
        Slot(
            path="/".join(f"{bus - above:02x}:0{int(above == 4)}.0" for above in (4, 3, 2, 0)),
            node=place // 4,
            domain=board,
        )
        for board in range((count + 7) // 8)
        for place, bus in enumerate(_H100_BUSES[: count - 8 * board])
    ]


def _nvswitches() -> tuple[Slot, ...]:
    """Four NVSwitches behind a PCIe switch with ACS, which is harmless without GPUs below it."""
    return tuple(
        Slot(
            path=f"7f:01.0/81:00.0/82:0{place}.0/{0x83 + place:02x}:00.0",
            node=1,
            device="22a3",
            device_class="068000",
            driver="nvidia-nvswitch",
            generation=4,
            generation_max=4,
            width=2,
            width_max=2,
            acs=ACS_REDIRECT,
        )
        for place in range(4)
    )


def h100_nvswitch(count: int = 8) -> Description:
    """H100 SXM5 connected by NVSwitches. Each GPU has a few PCIe replays, which is normal."""
    daemons = ("nv-fabricmanager", "nvidia-persistenced")
    tree = Tree(slots=_nvswitches(), daemons=daemons, cpus=224, memory_bytes=2048 * 1024**3)
    gpus = [nvml.h100(pcie_replay_counter=43 + 11 * index) for index in range(count)]
    return describe(gpus, _sxm_slots(count), tree)


def a100_sixteen() -> Description:
    """Sixteen A100 of 40 GB on two boards, connected by NVSwitches, like a cloud instance."""
    links = nvml.switched_links(12, version=4, mbps=25000)
    small = nvml.a100(name="NVIDIA A100-SXM4-40GB", memory_total=40960 * 1024**2, bar1_total=65536 * 1024**2)
    gpus: list[Facts] = [small | links | {"fabric_state": 0} for _ in range(16)]
    slots = [replace(slot, device="20b0", generation=4, generation_max=4) for slot in _sxm_slots(16)]
    daemons = ("nv-fabricmanager", "nvidia-persistenced")
    return describe(gpus, slots, Tree(slots=_nvswitches(), daemons=daemons))


def a100_pcie_two_sockets() -> Description:
    """Eight A100 PCIe: on each socket two switches with two GPUs each, below one host bridge.

    No NVLink bridges are fitted, so the GPUs' NVLinks exist and are inactive.
    """
    slots = [
        Slot(
            path=f"{root:02x}:0{port}.0/{base:02x}:00.0/{base + 1:02x}:0{4 * down}.0/{base + 2 + down:02x}:00.0",
            node=node,
            device="20b5",
            generation=4,
            generation_max=4,
        )
        for node, root in enumerate((0x15, 0x95))
        for port, base in ((1, root + 1), (3, root + 8))
        for down in range(2)
    ]
    inactive: Facts = {"nvlinks": 12, "nvlink_count": 12, "nvlink.*.active": 0}
    watts: Facts = {"enforced_power_limit": 300000, "default_power_limit": 300000, "power_draw": 45000}
    gpus = [nvml.a100() | {"name": "NVIDIA A100 80GB PCIe"} | inactive | watts for _ in range(8)]
    return describe(gpus, slots, lines=NO_NVLINK_P2P)


def a100_nvlink() -> Description:
    """Four A100 SXM4 on two sockets, connected by four NVLinks per pair, without switches."""
    slots = epyc_slots(("01", "41", "81", "c1"), device="20b2", generation=4, generation_max=4)
    buses = [nvml_bus_id(slot) for slot in slots]
    gpus = [
        nvml.a100() | nvml.direct_links([other for other in buses if other != bus], each=4, version=4, mbps=25000)
        for bus in buses
    ]
    return describe(gpus, slots)


def rtx4090_eight() -> Description:
    """Eight idle GeForce RTX 4090 on two sockets, two per host bridge. P2P is not supported, as on every GeForce."""
    slots = [
        Slot(
            path=f"{root:02x}:0{port}.1/{root + port:02x}:00.0",
            node=root // 0x80,
            device="2684",
            device_class="030000",
            generation=1,
            generation_max=4,
        )
        for root in (0x00, 0x40, 0x80, 0xC0)
        for port in (1, 3)
    ]
    return describe([nvml.rtx4090() for _ in slots], slots, lines=NO_P2P)


def rtx5090_two() -> Description:
    """Two idle GeForce RTX 5090 below one host bridge, as in a workstation."""
    slots = [
        Slot(path=f"00:0{port}.1/0{port}:00.0", device="2b85", device_class="030000", generation=1, generation_max=5)
        for port in (1, 3)
    ]
    tree = Tree(sockets=1, cpus=32, memory_bytes=128 * 1024**3, driver="580.105.08")
    return describe([nvml.rtx5090() for _ in slots], slots, tree, lines=NO_P2P)
