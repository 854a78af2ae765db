"""The parts of a machine description: the answers of NVML, and the matching trees."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from helpers.nvml_library import Facts, Machine
from helpers.trees import Slot, Tree, affinity, level, nvml_bus_id
from kdoctor.probes.nvml import probe as nvml_probe

NO_P2P: dict[str, int | str] = {"pair.*.p2p_read": 2, "pair.*.p2p_write": 2, "pair.*.p2p_nvlink": 5}
"""The GPUs do not support P2P (GNS), as on GeForce."""
NO_NVLINK_P2P: dict[str, int | str] = {"pair.*.p2p_nvlink": 5}


@dataclass(frozen=True, kw_only=True)
class Description:
    """One machine."""

    nvml: Machine
    tree: Tree
    deadline_s: float = nvml_probe.DEADLINE_S
    """Deadline of the NVML probe. Tests of hanging calls shorten it."""


def describe(
    gpus: list[Facts], slots: list[Slot], tree: Tree | None = None, lines: Mapping[str, int | str] | None = None
) -> Description:
    """A machine with the same bus ids, pair levels, affinities and driver version in NVML and in its trees."""
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


def epyc_slots(buses: tuple[str, ...], **facts: Any) -> list[Slot]:
    """One GPU per host bridge, directly at the root port. Buses from 80 belong to the second socket."""
    return [Slot(path=f"{int(bus, 16) - 1:02x}:01.1/{bus}:00.0", node=int(bus, 16) // 0x80, **facts) for bus in buses]
