"""Whether the all-reduce is about as fast as what joins the GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from kdoctor.check import check
from kdoctor.facts import Environment, Gpu, GpuPair, Gpus, SmokeCase, SmokeRun, Unavailable, link_gbs
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import nvlinks
from kdoctor_checks.smoke._cases import MEASURE_ONLY, how_it_ended, name_of
from kdoctor_checks.smoke._places import Places, places_of
from kdoctor_checks.smoke._strategies import each_case

_SLOWING = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_NCHANNELS")
"""Variables that can make NCCL slow."""


class _Promise(NamedTuple):
    gbs: float
    level: str
    pair: str


@check("smoke.bandwidth", severity=Severity.WARNING, requires=["versions.tensorflow-installed"], scenario="smoke.speed")
def bandwidth(
    run: SmokeRun, gpus: Gpus | Unavailable, environment: Environment | Unavailable, *, least_share: float = 0.15
) -> Iterator[Outcome]:
    """The all-reduce over all GPUs has its share of the bandwidth that the topology promises.

    Why: gradients that go another way than the hardware offers (through the host's memory instead of NVLink, over a
    link that came up narrow) slow every step. The promise is what the weakest pair of GPUs can carry in one direction:
    NVLinks times the speed that the driver gives for one, or PCIe lanes times their generation's. How near NCCL comes
    depends on the machine, on peer access and on TensorFlow's packing of the message, hence the wide margin.
    Remedy: see which way NCCL takes (NCCL_DEBUG=INFO), and unset what forbids it the better one.
    Sources:
        https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
        https://www.nvidia.com/en-us/data-center/nvlink/
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome != "trained":
            return Unjudged(subject=name_of(case), reason=f"it did not finish (smoke.speed): {how_it_ended(case)}")
        if run.devices_kind == "cpu":
            return NotApplicable(reason="the replicas are devices of one CPU, of which no link promises anything")
        if case.replicas == 1:
            return NotApplicable(reason="one replica exchanges nothing")
        measured = case.measures.get("all_reduce_gbs")
        if measured is None:
            return Unjudged(subject=name_of(case), reason="the all-reduce was not timed")
        return _compare(case, measured, _promise(places_of(case, gpus)))

    def _compare(case: SmokeCase, measured: float, promise: _Promise | str) -> Outcome:
        if isinstance(promise, str):
            return Unjudged(subject=name_of(case), reason=f"{measured:.3g} GB/s, but {promise}")
        observed = (
            f"{measured:.3g} GB/s, {measured / promise.gbs:.0%} of the {promise.gbs:.4g} GB/s of {promise.level}, by "
            f"which {promise.pair}, the weakest pair, is joined"
        )
        if measured >= least_share * promise.gbs:
            return Evidence(subject="all-reduce", observed=observed)
        return _finding(observed, f"{least_share:.0%} of it or more", environment)

    yield from each_case(run, ("throughput",), judge, spread=False)


def _promise(places: Places) -> _Promise | str:
    """What the weakest pair can carry, or why that is not known."""
    found: list[_Promise] = []
    for first, second in combinations(range(len(places.names)), 2):
        joint, one, other = places.joint(first, second), places.gpus[first], places.gpus[second]
        if joint is None or one is None or other is None:
            return f"it is not known what joins {places.names[first]} and {places.names[second]}"
        gbs = _gbs(joint, one, other)
        if gbs is None:
            return f"the links of {joint.subject} were not read"
        level = f"NV{joint.nvlinks}" if joint.nvlinks else f"PCIe ({joint.level or 'level unknown'})"
        found.append(_Promise(gbs, level, joint.subject))
    return min(found) if found else "no pair of GPUs is known"


def _gbs(joint: GpuPair, one: Gpu, other: Gpu) -> float | None:
    """GB/s in one direction. The best that a link can do counts: an idle one runs slower, a narrow one is sought."""
    count = nvlinks(joint)
    if count is None:
        return None
    if count:
        speeds = [
            link.speed_gbs for gpu in (one, other) for link in gpu.nvlinks or () if link.active and link.speed_gbs
        ]
        return count * min(speeds) if speeds else None
    ways = [link_gbs(gpu.pcie_generation_max, gpu.pcie_width_max) for gpu in (one, other)]
    known = [way for way in ways if way is not None]
    return min(known) if len(known) == len(ways) else None


def _finding(observed: str, expected: str, environment: Environment | Unavailable) -> Finding:
    variables = environment.variables if isinstance(environment, Environment) else {}
    set_here = [name for name in _SLOWING if name in variables]
    if set_here:
        observed += f"; {', '.join(f'{name}={variables[name]}' for name in set_here)} is set"
    return Finding(
        subject="all-reduce",
        observed=observed,
        expected=expected,
        remedy=Remedy(
            summary="See which way NCCL takes: its log says P2P, SHM or NET for each channel, and NVLS where the "
            "switches add up. Compare with the pairs alone (kdoctor smoke pairs).",
            action=Action.CONFIGURE,
            commands=(
                *(f"unset {name}" for name in set_here),
                "export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH",
                "nvidia-smi topo -m",
            ),
        ),
        rollback=Rollback.to("the variables of this run", *(f"export {name}={variables[name]}" for name in set_here))
        if set_here
        else MEASURE_ONLY,
    )
