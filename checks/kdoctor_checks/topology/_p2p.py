"""Shared by the checks of peer access."""

from itertools import combinations

from kdoctor.facts import GpuPair, Gpus
from kdoctor.model import READ_ONLY, Evidence, Finding, Remedy, Unjudged
from kdoctor_checks._gpus import OF_ONE_SHELL, RESPONDING, answering, inactive_links, silent
from kdoctor_checks.topology._mesh import short_of_links, unlike_equals

MEANINGS = {
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "DR": "disabled by a registry key",
    "NS": "not supported",
}


def pairs_to_judge(gpus: Gpus) -> list[GpuPair]:
    """Every pair of responding GPUs. A pair that was not read has no statuses."""
    read = {frozenset((pair.first, pair.second)): pair for pair in gpus.pairs}
    return [
        read.get(frozenset((one.index, two.index)), GpuPair.of(one, two))
        for one, two in combinations(answering(gpus), 2)
    ]


def unanswered_pairs(gpus: Gpus) -> list[Unjudged]:
    """The outcome for each pair with a GPU that does not respond."""
    gone = {gpu.index for gpu in silent(gpus)}
    return [
        Unjudged(
            subject=GpuPair.of(one, two).subject, reason="one of them does not respond", explained_by=(RESPONDING,)
        )
        for one, two in combinations(gpus.devices, 2)
        if gone & {one.index, two.index}
    ]


def links_down(pair: GpuPair, gpus: Gpus) -> tuple[str, ...]:
    """The checks that report inactive NVLinks of one of the pair, or a fabric that was not started."""
    both = [gpu for gpu in gpus.devices if gpu.index in (pair.first, pair.second)]
    odd = {*unlike_equals(gpus), *short_of_links(gpus)} & {pair.first, pair.second}
    found = ("topology.nvlink", "topology.nvlink-direct") if odd or any(map(inactive_links, both)) else ()
    waiting = any(gpu.fabric_state in ("not-started", "in-progress") for gpu in both)
    return (*found, *(("topology.fabric",) if waiting else ()))


def explained_by(pair: GpuPair, gpus: Gpus) -> tuple[str, ...]:
    """The checks that explain why the pair has no peer access."""
    both = [gpu for gpu in gpus.devices if gpu.index in (pair.first, pair.second)]
    return (
        *links_down(pair, gpus),
        *(("gpu.mig-mode",) if any(gpu.mig_mode for gpu in both) else ()),
        *(("driver.confidential-computing",) if gpus.conf_compute_multi_gpu == "none" and gpus.conf_compute else ()),
    )


def geforce(pair: GpuPair, gpus: Gpus) -> bool | None:
    """Whether one of the pair is a GeForce card; None if unknown."""
    names = [gpu.name for gpu in gpus.devices if gpu.index in (pair.first, pair.second)]
    return True if any("GeForce" in (name or "") for name in names) else None if None in names else False


def reported_by_pairs(pair: GpuPair) -> bool:
    """Whether peer access fails because the GPUs are on two sockets, which topology.pairs reports."""
    return pair.level == "SYS" and not pair.nvlinks and {pair.p2p_read, pair.p2p_write} <= {"CNS", "TNS", "NS"}


def describe(pair: GpuPair) -> str:
    """The statuses with their meanings."""
    statuses = (pair.p2p_read or "not read", pair.p2p_write or "not read")
    read, write = (f"{status} ({MEANINGS[status]})" if status in MEANINGS else status for status in statuses)
    return f"P2P read and write {read}" if read == write else f"P2P read {read}, write {write}"


def unread(pair: GpuPair) -> Unjudged:
    """The outcome for a pair whose status was not read."""
    error = pair.errors.get("p2p_read") or pair.errors.get("p2p_write") or "no reason given"
    return Unjudged(subject=pair.subject, reason=f"P2P status not read ({error})")


def judge_pair(pair: GpuPair, gpus: Gpus, remedy: Remedy) -> Evidence | Finding | Unjudged:
    """Whether both GPUs can read and write each other's memory."""
    statuses = {pair.p2p_read, pair.p2p_write}
    if not statuses - {"OK", None}:
        return unread(pair) if None in statuses else Evidence(subject=pair.subject, observed="P2P supported")
    return Finding(
        subject=pair.subject,
        observed=f"no peer access ({describe(pair)})",
        brief=f"no peer access ({'/'.join(sorted(str(status) for status in statuses - {'OK', None}))})",
        explained_by=explained_by(pair, gpus),
        expected="P2P read and write access",
        remedy=remedy,
        rollback=OF_ONE_SHELL if remedy.commands else READ_ONLY,
    )
