"""Whole machines, described by the project: what NVML answers, and the /sys, /proc and /dev that go with it.

``facts("h100-nvswitch")`` gives their facts, collected by the real probes; ``environment("h100-nvswitch", folder)``
lets the real command line run against one in a subprocess. Each needs the system's C compiler, and skips without.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from helpers import nvml_library as nvml
from helpers.nvml_library import Facts, Machine
from helpers.trees import ACS_REDIRECT, Slot, Tree, affinity, level, nvml_bus_id
from kdoctor.collect import environment as environment_probe
from kdoctor.collect import host, kernel, kernel_log, pci
from kdoctor.collect import nvml as nvml_probe
from kdoctor.collect.child import Children
from kdoctor.collect.collector import collect_facts
from kdoctor.collect.probe import ROOT_VARIABLE, Context
from kdoctor.facts import FactGroup, Gpus, Unavailable

FactTable = dict[type[FactGroup], "FactGroup | Unavailable"]

PROBES = (
    nvml_probe.PROBE,
    kernel.PROBE,
    kernel_log.PROBE,
    pci.PROBE,
    host.PROBE,
    environment_probe.PROBE,
)
"""The probes that read a machine, not a Python environment."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """One machine."""

    nvml: Machine
    tree: Tree
    deadline_s: float = nvml_probe.DEADLINE_S
    """What the NVML probe has, so that a test need not wait long for a call that hangs."""


def describe(
    gpus: list[Facts], slots: list[Slot], tree: Tree | None = None, lines: Mapping[str, int | str] | None = None
) -> Description:
    """A machine whose NVML and whose trees agree: bus ids, pair levels, affinities, driver version."""
    tree = tree or Tree()
    others = tree.slots
    tree = tree.changed(slots=(*slots, *others))
    near = affinity(tree, slots)
    named: list[Facts] = [
        {"bus_id": nvml_bus_id(slot), **near[place], **facts}
        for place, (facts, slot) in enumerate(zip(gpus, slots, strict=True))
    ]
    machine = Machine.of(*named, driver=tree.driver or "570.158.01")
    for first, second in itertools.combinations(range(len(slots)), 2):
        machine = machine.pair(first, second, level(slots[first], slots[second]))
    return Description(nvml=machine.also(lines or {}), tree=tree)


# --- healthy machines ------------------------------------------------------------------------------------------

_H100_BUSES = (0x19, 0x3B, 0x4C, 0x5D, 0x9B, 0xBB, 0xCB, 0xDB)


def _sxm_slots(count: int) -> list[Slot]:
    """GPUs behind a switch each, on a root complex each, half of every eight on either socket."""
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
    """Four NVSwitches behind a switch whose ports have ACS on: no GPU is there, so it does no harm."""
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
    """H100 SXM5 joined by NVSwitches; every GPU has some PCIe replays, as healthy ones do."""
    daemons = ("nv-fabricmanager", "nvidia-persistenced")
    tree = Tree(slots=_nvswitches(), daemons=daemons, cpus=224, memory_bytes=2048 * 1024**3)
    gpus = [nvml.h100(pcie_replay_counter=43 + 11 * index) for index in range(count)]
    return describe(gpus, _sxm_slots(count), tree)


def a100_sixteen() -> Description:
    """Sixteen A100 of 40 GB on two boards, all joined by NVSwitches, as a cloud rents them."""
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
    """Four A100 SXM4 on two sockets, joined by four NVLinks a pair, without switches."""
    slots = _epyc_slots(("01", "41", "81", "c1"), device="20b2", generation=4, generation_max=4)
    buses = [nvml_bus_id(slot) for slot in slots]
    gpus = [
        nvml.a100() | nvml.direct_links([other for other in buses if other != bus], each=4, version=4, mbps=25000)
        for bus in buses
    ]
    return describe(gpus, slots)


def rtx4090_eight() -> Description:
    """Eight idle GeForce RTX 4090 on two sockets, two a host bridge; P2P is not supported, as on every GeForce."""
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
        Slot(
            path=f"00:0{port}.1/0{port}:00.0",
            device="2b85",
            device_class="030000",
            generation=1,
            generation_max=5,
        )
        for port in (1, 3)
    ]
    tree = Tree(sockets=1, cpus=32, memory_bytes=128 * 1024**3, driver="580.105.08")
    return describe([nvml.rtx5090() for _ in slots], slots, tree, lines=NO_P2P)


# --- machines with a peculiarity -------------------------------------------------------------------------------


def l4_two_one_x1() -> Description:
    """Two L4, busy enough for P0; one runs on a single lane, and the minor numbers are in reverse order."""
    slots = _epyc_slots(("41", "c1"), device="27b8", generation=4, generation_max=4)
    slots[1] = replace(slots[1], width=1)
    gpus = [nvml.l4(minor_number=1), nvml.l4(minor_number=0, pcie_width=1)]
    return describe(gpus, slots, Tree(minors=(0, 1)))


def mig_on() -> Description:
    """Four A100 with MIG on, under which volatile ECC counts, remapped rows and utilisation are not told."""
    hidden = (
        "ecc_corrected_volatile",
        "ecc_uncorrected_volatile",
        "remapped_rows_correctable",
        "utilization_gpu",
    )
    lines: dict[str, int | str] = {"gpu.*.mig_mode": 1}
    for gpu in range(4):
        lines |= {f"gpu.{gpu}.mig_mode": 1, f"gpu.{gpu}.mig_mode_pending": 1}
        lines |= {f"gpu.{gpu}.{fact}": "-" for fact in hidden}
    machine = a100_nvlink()
    return Description(nvml=machine.nvml.also(lines), tree=machine.tree)


def vgpu() -> Description:
    """A virtual machine with two vGPUs: no bridges, no NUMA, and much that is not told."""
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
    """Four A100, of which number 2 fell off the bus: the log tells it, and its neighbours' links to it are down."""
    machine = a100_nvlink()
    slots = list(machine.tree.slots)
    lost = slots[2] = replace(slots[2], lost=True)
    lines = {
        f"gpu.{gpu}.nvlink.{link}.active": 0
        for gpu, first in ((0, 4), (1, 4), (3, 8))  # where each one's links to number 2 begin
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


# --- machines whose driver does not answer ---------------------------------------------------------------------


def driver_not_loaded() -> Description:
    """Eight H100, and a kernel without the nvidia module (after a kernel upgrade, say)."""
    machine = h100_nvswitch()
    slots = tuple(replace(slot, driver=None) for slot in machine.tree.slots)
    tree = machine.tree.changed(slots=slots, driver=None, modules=(), daemons=())
    return Description(nvml=nvml.driver_not_loaded(), tree=tree)


def nouveau() -> Description:
    """The same with the free driver bound to the GPUs."""
    machine = driver_not_loaded()
    slots = tuple(replace(slot, driver="nouveau") for slot in machine.tree.slots)
    return Description(nvml=machine.nvml, tree=machine.tree.changed(slots=slots, modules=("nouveau",)))


def unsigned_module() -> Description:
    """The same, because Secure Boot refuses a module that nobody signed."""
    machine = driver_not_loaded()
    log = ("Loading of unsigned module is rejected",)
    return Description(nvml=machine.nvml, tree=machine.tree.changed(secure_boot=True, log=log))


def library_mismatch() -> Description:
    """Eight H100: the driver's packages were upgraded, and the old kernel module still runs."""
    tree = h100_nvswitch().tree
    log = (
        "NVRM: API mismatch: the client has the version 570.172.08, but",
        "NVRM: this kernel module has the version 570.158.01.  Please",
    )
    return Description(nvml=nvml.library_mismatch(), tree=tree.changed(log=log))


def permission_denied() -> Description:
    """Two L4 whose device nodes this user may not open."""
    tree = l4_two_one_x1().tree.changed(node_mode=0o000)
    return Description(nvml=nvml.permission_denied(), tree=tree)


def nothing_supported() -> Description:
    """Two L4 that can be opened and then answer every call with "not supported"."""
    machine = l4_two_one_x1()
    orders = machine.nvml.order("*", nvml.NOT_SUPPORTED).order("nvmlDeviceGetHandleByIndex_v2", 0)
    return Description(nvml=orders, tree=machine.tree)


def one_call_hangs() -> Description:
    """Two L4, of which number 1 never says what it draws."""
    machine = l4_two_one_x1()
    return Description(
        nvml=machine.nvml.order("nvmlDeviceGetPowerUsage", nvml.HANG, gpu=1), tree=machine.tree, deadline_s=2.0
    )


# --- parts -----------------------------------------------------------------------------------------------------

NO_P2P: dict[str, int | str] = {"pair.*.p2p_read": 2, "pair.*.p2p_write": 2, "pair.*.p2p_nvlink": 5}
"""GNS, as GeForce says."""
NO_NVLINK_P2P: dict[str, int | str] = {"pair.*.p2p_nvlink": 5}


def _epyc_slots(buses: tuple[str, ...], **facts: Any) -> list[Slot]:
    """One GPU a host bridge, straight at its root port; the buses from 80 on belong to the second socket."""
    return [Slot(path=f"{int(bus, 16) - 1:02x}:01.1/{bus}:00.0", node=int(bus, 16) // 0x80, **facts) for bus in buses]


MACHINES: dict[str, Callable[[], Description]] = {
    "h100-nvswitch": h100_nvswitch,
    "a100-sixteen": a100_sixteen,
    "a100-pcie": a100_pcie_two_sockets,
    "a100-nvlink": a100_nvlink,
    "rtx4090": rtx4090_eight,
    "rtx5090": rtx5090_two,
    "l4-one-x1": l4_two_one_x1,
    "mig-on": mig_on,
    "vgpu": vgpu,
    "one-gpu-lost": one_gpu_lost,
    "driver-not-loaded": driver_not_loaded,
    "nouveau": nouveau,
    "unsigned-module": unsigned_module,
    "library-mismatch": library_mismatch,
    "permission-denied": permission_denied,
    "nothing-supported": nothing_supported,
    "one-call-hangs": one_call_hangs,
}
HEALTHY = ("h100-nvswitch", "a100-sixteen", "a100-pcie", "a100-nvlink", "rtx4090", "rtx5090")
"""Machines on which no check may find an error."""


# --- use -------------------------------------------------------------------------------------------------------


@functools.cache
def library() -> Path:
    """The folder of the stand-in library, built once a process; it skips where there is no C compiler."""
    return nvml.build(_folder())


def _folder() -> Path:
    """A folder that goes when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="kdoctor-machine-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def environment(name: str, folder: Path) -> dict[str, str]:
    """Write a machine below the folder; return the variables that let kdoctor, in a subprocess, run on it."""
    return write(MACHINES[name](), folder)


def write(machine: Description, folder: Path) -> dict[str, str]:
    """The same for a description of one's own."""
    root = machine.tree.write(folder / "root")
    return {
        "LD_LIBRARY_PATH": str(library()),
        **machine.nvml.write(folder / "machine"),
        ROOT_VARIABLE: str(root),
    }


def collected(machine: Description) -> FactTable:
    """The facts of a description, by the real probes and the real binding."""
    folder = _folder()
    variables = write(machine, folder)
    context = Context(
        python=sys.executable,
        chosen_by="kdoctor's own",
        environ={**os.environ, **variables},
        children=Children(),
        root=folder / "root",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvml_probe, "DEADLINE_S", machine.deadline_s)
        table = collect_facts(PROBES, context)
    shutil.rmtree(folder)
    return table


@functools.cache
def facts(name: str) -> Mapping[type[FactGroup], FactGroup | Unavailable]:
    """The facts of a machine by its name in ``MACHINES``, collected once a process. Not to be changed."""
    return collected(MACHINES[name]())


def groups(name: str) -> tuple[FactGroup, ...]:
    """Those of its groups that could be collected, for ``compute_check(check, *groups("rtx4090"))``."""
    return tuple(group for group in facts(name).values() if not isinstance(group, Unavailable))


def gpus(name: str) -> Gpus:
    """Its GPUs."""
    found = facts(name)[Gpus]
    assert isinstance(found, Gpus), found
    return found
