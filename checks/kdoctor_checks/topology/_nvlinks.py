"""Shared by the checks of NVLink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kdoctor.facts import Gpu, NvLink, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, Remedy, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import RESTART

_MODULES = ("SXM", "HBM3")
"""In the names of modules with NVLink: ``NVIDIA A100-SXM4-80GB``, ``NVIDIA H100 80GB HBM3``."""
_SWITCHED_MODULES = ("SXM4", "SXM5", "HBM3")
"""In the names of modules whose boards use every link."""
_SLOWEST_SHARE = 0.95


def switched(gpu: Gpu, pci: PciDevices | Unavailable) -> bool:
    """Whether the GPU is connected to others through NVSwitches.

    The GPU reports it. If it does not (all links down, or a dump without remote devices), NVSwitches on the bus or a
    module whose board uses every link show it.
    """
    links = gpu.nvlinks or ()
    kinds = {link.remote_kind for link in links}
    if "switch" in kinds or kinds & {"gpu", "npu"}:
        return "switch" in kinds
    down = all(link.active is False for link in links)
    if down and isinstance(pci, PciDevices) and pci.switches:
        return True
    return any(mark in (gpu.name or "") for mark in (_MODULES if down else _SWITCHED_MODULES))


def judge_links(
    gpu: Gpu, peers: Sequence[Gpu], least: int, remedy: Remedy, explained_by: tuple[str, ...] = ()
) -> Evidence | Unjudged | Finding:
    """Whether all links of a GPU are active, as many as ``least`` and as its peers have, and as fast as theirs."""
    links = gpu.nvlinks or ()
    unread = [link for link in links if link.active is None]
    active = [link for link in links if link.active]
    expected = max([least, *(_active(peer) for peer in peers if peer.name == gpu.name)])
    down = [link.index for link in links if link.active is False]
    slow = _slow(active, peers)
    if down and not active:
        observed = f"all {counted(len(links), 'NVLink')} are inactive" if len(links) > 1 else "all NVLinks are inactive"
        brief = "all NVLinks are inactive"
    elif down:
        observed = f"{len(active)} of {counted(len(links), 'NVLink')} active (inactive: {', '.join(map(str, down))})"
        brief = "some NVLinks are inactive"
    elif not unread and len(active) < expected:
        observed = f"{counted(len(active), 'NVLink')} active, {expected} expected"
        brief = "fewer NVLinks are active than expected"
    elif slow:
        observed, brief = f"slow NVLinks: {', '.join(slow)}", "some NVLinks are slow"
    elif unread:
        errors = sorted({link.errors.get("active", "no reason given") for link in unread})
        reason = f"the state of {counted(len(unread), 'NVLink')} was not read ({', '.join(errors)})"
        return Unjudged(subject=gpu.subject, reason=reason)
    else:
        return Evidence(subject=gpu.subject, observed=_describe(active))
    return Finding(
        subject=gpu.subject,
        observed=observed,
        brief=brief,
        explained_by=explained_by,
        expected="all NVLinks active, at the same speed",
        remedy=remedy,
        rollback=RESTART,
    )


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
