"""Shared by the checks of NVLink."""

import re
from collections import Counter
from collections.abc import Sequence

from kdoctor.facts import Gpu, GpuPair, Gpus, NvLink, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, Remedy, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import RESTART, virtual

_CARDS = re.compile(r"GeForce|Quadro|TITAN|RTX|PCI|\bNVL\b|\bA(?:2|10|16|30|40)\b|\bA30X|\bA100X|\bCNX", re.IGNORECASE)
"""In the names of PCIe cards, which have NVLinks only with a bridge. Any other model is a module on a board."""
_DIRECT_BOARDS = "SXM2"
"""In the names of the modules whose boards connect GPUs directly and may leave links unused (P100, V100)."""
_SUPERCHIP = re.compile(r"\bGH\d{3}\b")
"""In the names of Grace Hopper superchips, which exist without NVLinks to other GPUs."""
_IN_FABRIC = ("not-started", "in-progress", "completed")
_SLOWEST_SHARE = 0.95


def is_card(gpu: Gpu) -> bool:
    """Whether the GPU is a PCIe card, whose NVLinks need a bridge."""
    return bool(_CARDS.search(gpu.name or ""))


def may_be_linked(gpu: Gpu) -> bool:
    """Whether an NVLink of the GPU is active, or was not read."""
    return any(link.active is not False for link in gpu.nvlinks or ())


def switched(gpu: Gpu, pci: PciDevices | Unavailable) -> bool:
    """Whether the GPU is connected to others through NVSwitches.

    Its links report it, or its fabric state. If neither does (all links down, or a dump without remote devices),
    NVSwitches on the bus show it. Without any of these, a module that is not known to be connected directly counts.
    """
    links = gpu.nvlinks or ()
    kinds = {link.remote_kind for link in links}
    if "switch" in kinds or kinds & {"gpu", "npu"}:
        return "switch" in kinds
    if is_card(gpu):
        return False
    if gpu.fabric_state in _IN_FABRIC:
        return True
    if isinstance(pci, PciDevices) and pci.switches:
        return True
    down = bool(links) and all(link.active is False for link in links)
    return down or _DIRECT_BOARDS not in (gpu.name or "")


def stands_alone(gpu: Gpu, gpus: Gpus, pci: PciDevices | Unavailable) -> bool:
    """Whether the inactive NVLinks of the only GPU may lead nowhere.

    A Grace Hopper machine with one GPU uses none of them, nor does a virtual machine with one GPU of a board: the
    fabric manager enables no NVLink for it, even where its registration with the fabric is complete.

    Source: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html (Shared NVSwitch)
    """
    if len(gpus.devices) > 1 or gpus.count not in (None, 1) or (isinstance(pci, PciDevices) and pci.switches):
        return False
    is_superchip = bool(_SUPERCHIP.search(gpu.name or "")) and gpu.fabric_state not in _IN_FABRIC
    return is_superchip or virtual(gpus) is not None


def judge_links(
    gpu: Gpu,
    peers: Sequence[Gpu],
    least: int,
    remedy: Remedy,
    explained_by: tuple[str, ...] = (),
    *,
    pairs: Sequence[GpuPair] = (),
) -> Evidence | Unjudged | Finding:
    """Whether all links of a GPU are active, as many as ``least`` and as its peers have, and as fast as theirs."""
    links = gpu.nvlinks or ()
    if not links:
        return Unjudged(subject=gpu.subject, reason="none of its NVLinks was read")
    timed = any(link.speed_gbs for peer in peers for link in peer.nvlinks or ())
    unread = [link for link in links if link.active is None]
    unmeasured = [link for link in links if timed and link.active and link.speed_gbs is None]
    active = [link for link in links if link.active]
    expected = max([least, *(_active(peer) for peer in peers if peer.name == gpu.name)])
    full = sum(_active(peer) == expected for peer in peers if peer.name == gpu.name)
    down = [link.index for link in links if link.active is False]
    slow = _slow(active, peers)
    if down and not active and expected and full:
        observed = f"0 of {counted(expected, 'NVLink')} active; {counted(full, 'other GPU')} {has(full)} {expected}"
        brief = "all NVLinks are inactive"
    elif down and not active and not unread:
        observed = f"all {counted(len(links), 'NVLink')} are inactive" if len(links) > 1 else "all NVLinks are inactive"
        brief = "all NVLinks are inactive"
    elif down:
        observed = f"{len(active)} of {counted(len(links), 'NVLink')} active (inactive: {', '.join(map(str, down))})"
        observed += f"; the state of {counted(len(unread), 'NVLink')} was not read" if unread else ""
        brief = "some NVLinks are inactive"
    elif not unread and len(active) < expected:
        observed = f"{counted(len(active), 'NVLink')} active, {expected} expected"
        brief = "fewer NVLinks are active than expected"
    elif slow:
        observed, brief = f"slow NVLinks: {', '.join(slow)}", "some NVLinks are slow"
    elif unread or unmeasured:
        what, field, lacking = ("state", "active", unread) if unread else ("speed", "speed_gbs", unmeasured)
        errors = sorted({link.errors.get(field, "no reason given") for link in lacking})
        reason = f"the {what} of {counted(len(lacking), 'NVLink')} was not read ({', '.join(errors)})"
        return Unjudged(subject=gpu.subject, reason=reason)
    else:
        text = _describe(active)
        is_in_pairs = any(pair.nvlinks for pair in pairs)  # which topology.pairs sums up
        return Evidence(subject=gpu.subject, observed=text, brief="" if is_in_pairs else text)
    return Finding(
        subject=gpu.subject,
        observed=observed,
        brief=brief,
        explained_by=explained_by,
        expected="all NVLinks active, at the same speed",
        remedy=remedy,
        rollback=RESTART,
    )


def has(number: int) -> str:
    """The verb for a number of GPUs."""
    return "has" if number == 1 else "have"


def _active(gpu: Gpu) -> int:
    return sum(bool(link.active) for link in gpu.nvlinks or ())


def _slow(active: Sequence[NvLink], peers: Sequence[Gpu]) -> list[str]:
    """The active links that are slower than most."""
    speeds = Counter(link.speed_gbs for peer in peers for link in peer.nvlinks or () if link.active and link.speed_gbs)
    if not speeds:
        return []
    usual = max(speeds, key=lambda speed: (speeds[speed], speed))
    return [
        f"link {link.index} {link.speed_gbs:g} of {usual:g} GB/s"
        for link in active
        if link.speed_gbs and link.speed_gbs < _SLOWEST_SHARE * usual
    ]


def _describe(active: Sequence[NvLink]) -> str:
    speeds = sorted({f"{link.speed_gbs:g} GB/s" for link in active if link.speed_gbs})
    return f"{counted(len(active), 'NVLink')} active" + (f", each {' or '.join(speeds)}" if speeds else "")
