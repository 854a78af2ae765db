from itertools import combinations
from typing import NamedTuple

from kdoctor.commands.shell import set_variable
from kdoctor.facts import Environment, Gpu, GpuPair, Gpus, SmokeCase, SmokeRun, Unavailable, link_gbs
from kdoctor.model import Finding, NotApplicable, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import nvlinks
from kdoctor_checks.smoke._cases import describe_end
from kdoctor_checks.smoke._judging import NO_ROLLBACK, evidence, unknown
from kdoctor_checks.smoke._replica_gpus import ReplicaGpus, replica_gpus
from kdoctor_checks.smoke._trained import cases_of, trained

_SLOWING = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_NCHANNELS")
"""Variables that can make NCCL slow."""


class _Link(NamedTuple):
    """The bandwidth of a link in one direction."""

    gbs: float
    level: str
    pair: str


@trained(
    "smoke.bandwidth",
    severity=Severity.WARNING,
    scenario="smoke.speed",
    cases=cases_of("smoke.speed"),
    replicated=False,
    finished=False,
)
def bandwidth(
    run: SmokeRun,
    case: SmokeCase,
    gpus: Gpus | Unavailable,
    environment: Environment | Unavailable,
    *,
    least_share: float = 0.15,
) -> Outcome:
    """All-reduce over all GPUs reaches its share of the link bandwidth.

    Why: gradients that do not use the best path (host memory instead of NVLink, or a link with fewer lanes than
    possible) slow down every step. The reference is what the weakest pair of GPUs can carry in one direction: NVLinks
    times their reported speed, or PCIe lanes times their generation's speed. How close NCCL comes depends on the
    machine, on peer access and on how TensorFlow packs the message, so the margin is wide.
    Remedy: check which path NCCL uses (NCCL_DEBUG=INFO), and unset what prevents the better one.
    Sources:
        https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
        https://www.nvidia.com/en-us/data-center/nvlink/
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    if case.outcome != "trained":
        return unknown(case, f"smoke.speed did not finish: {describe_end(case)}")
    if run.devices_kind == "cpu":
        return NotApplicable(reason="the replicas are devices of one CPU, without links between them")
    if case.replicas == 1:
        return NotApplicable(reason="a single replica has no all-reduce")
    measured = case.measures.get("all_reduce_gbs")
    if measured is None:
        return unknown(case, "the all-reduce was not timed")
    link = _weakest_link(replica_gpus(case, gpus))
    if isinstance(link, str):
        return unknown(case, f"{measured:.3g} GB/s, but {link}")
    return _compare(measured, link, least_share, environment)


def _compare(measured: float, link: _Link, least_share: float, environment: Environment | Unavailable) -> Outcome:
    observed = (
        f"{measured:.3g} GB/s, {measured / link.gbs:.0%} of the {link.gbs:.4g} GB/s of {link.level} between "
        f"the weakest pair, {link.pair}"
    )
    if measured >= least_share * link.gbs:
        return evidence("all-reduce", observed)
    return _finding(observed, f"at least {least_share:.0%} of it", environment)


def _weakest_link(replicas: ReplicaGpus) -> _Link | str:
    """The link with the least bandwidth, or why it is not known."""
    found: list[_Link] = []
    for first, second in combinations(range(len(replicas.names)), 2):
        link, one, other = replicas.link(first, second), replicas.gpus[first], replicas.gpus[second]
        if link is None or one is None or other is None:
            return f"the link between {replicas.names[first]} and {replicas.names[second]} is not known"
        gbs = _gbs(link, one, other)
        if gbs is None:
            return f"the bandwidth of {link.subject} was not read"
        level = f"NV{link.nvlinks}" if link.nvlinks else f"PCIe ({link.level or 'level unknown'})"
        found.append(_Link(gbs, level, link.subject))
    return min(found) if found else "no pair of GPUs is known"


def _gbs(link: GpuPair, one: Gpu, other: Gpu) -> float | None:
    """GB/s in one direction at best: the current PCIe link of an idle GPU is slower."""
    count = nvlinks(link)
    if count is None:
        return None
    if count:
        speeds = [
            lane.speed_gbs for gpu in (one, other) for lane in gpu.nvlinks or () if lane.active and lane.speed_gbs
        ]
        return count * min(speeds) if speeds else None
    maxima = [link_gbs(gpu.pcie_generation_max, gpu.pcie_width_max) for gpu in (one, other)]
    known = [gbs for gbs in maxima if gbs is not None]
    return min(known) if len(known) == len(maxima) else None


def _finding(observed: str, expected: str, environment: Environment | Unavailable) -> Finding:
    variables = environment.variables if isinstance(environment, Environment) else {}
    assignments = {name: f"{name}={variables[name]}" for name in _SLOWING if name in variables}
    if assignments:
        observed += f"; {', '.join(assignments.values())} {'is' if len(assignments) == 1 else 'are'} set"
    exports = [set_variable(name, variables[name]) for name in assignments]
    return Finding(
        subject="all-reduce",
        observed=observed,
        brief="slower than the links between the GPUs allow",
        explained_by=("topology.nvlink", "topology.pcie-width", "topology.pcie-generation", "smoke.pairs"),
        expected=expected,
        remedy=Remedy.configure(
            "Check which path NCCL uses: its log reports P2P, SHM or NET for each channel. kdoctor "
            "smoke pairs tests each pair alone.",
            *tuple(set_variable(name, None) for name in assignments),
            look=("export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH", "nvidia-smi topo -m"),
        ),
        rollback=Rollback.to("restore the variables of this run", *exports) if exports else NO_ROLLBACK,
    )
