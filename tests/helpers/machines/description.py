"""What a description of a machine is made of: NVML's answers, the trees that agree with them, and parts of both."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from helpers.nvml_library import Facts, Machine
from helpers.trees import Slot, Tree, affinity, level, nvml_bus_id
from kdoctor.probes.nvml import probe as nvml_probe

NO_P2P: dict[str, int | str] = {"pair.*.p2p_read": 2, "pair.*.p2p_write": 2, "pair.*.p2p_nvlink": 5}
"""GNS, as GeForce says."""
NO_NVLINK_P2P: dict[str, int | str] = {"pair.*.p2p_nvlink": 5}


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


def epyc_slots(buses: tuple[str, ...], **facts: Any) -> list[Slot]:
    """One GPU a host bridge, straight at its root port; the buses from 80 on belong to the second socket."""
    return [Slot(path=f"{int(bus, 16) - 1:02x}:01.1/{bus}:00.0", node=int(bus, 16) // 0x80, **facts) for bus in buses]
