"""The checks of how fast trainings are, and whether they are repeatable."""

from itertools import combinations
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from helpers.facts import bus_id, environment, geforce, geforces, gpu, gpus, nvlinks, pair, smoke_case, smoke_run
from helpers.rows import fails, judged, passes, skips, table, unknown
from kdoctor.engine.report import Result
from kdoctor.facts import Gpus, NvLink, SmokeRun
from kdoctor.model import Severity


def run(gbs: float | None = 300.0, replicas: int = 8, **changes: Any) -> SmokeRun:
    values: dict[str, Any] = {
        "measures": {} if gbs is None else {"all_reduce_gbs": gbs},
        "bus_ids": tuple(bus_id(index) for index in range(replicas)),
        **changes,
    }
    return smoke_run("smoke.speed", replicas, smoke_case("throughput", replicas, **values))


def second(links: tuple[NvLink, ...]) -> Gpus:
    return gpus(2, gpu(0), gpu(1, nvlinks=links))


P2P_OFF = "NCCL_P2P_DISABLE"
NOT_LISTED = (NvLink(index=18, active=False, speed_gbs=1.0), NvLink(index=19, active=True))
UNLINKED = tuple(pair(a, b, nvlinks=None) for a, b in combinations(range(8), 2))
QUARTER = 0.25 * 18 * 26.562
CPU = smoke_run("smoke.speed", 2, *run(3.0, 2).cases, devices_kind="cpu")

test_bandwidth = table(
    "smoke.bandwidth",
    Severity.WARNING,
    # 18 links of 26.562 GB/s, as NVML gives them on an H100: 478.1 GB/s
    passes(run(300.0), "300 GB/s", "63%", "478.1 GB/s of NV18", "GPU 0 - GPU 1"),
    passes(run(300.0, 2), second(nvlinks(18, speed_gbs=20.0)), "360 GB/s of NV18"),  # the slowest active link
    passes(run(300.0, 2), second((*nvlinks(18), *NOT_LISTED)), "478.1 GB/s of NV18"),
    fails(run(12.0), "12 GB/s, 3% of the 478.1 GB/s", "15%", commands=(), rollback=(), unsaid="set"),
    passes(run(QUARTER), {"least_share": 0.25}),
    fails(
        run(12.0),
        environment(NCCL_P2P_DISABLE="1"),
        f"; {P2P_OFF}=1 is set.",
        commands=(f"unset {P2P_OFF}",),
        rollback=(f"export {P2P_OFF}=1",),
    ),
    fails(
        run(12.0),
        environment(NCCL_ALGO="Tree", NCCL_P2P_DISABLE="1"),
        f"; {P2P_OFF}=1, NCCL_ALGO=Tree are set.",
        commands=(f"unset {P2P_OFF}", "unset NCCL_ALGO"),
    ),
    # generation 4, 16 lanes: 16 GT/s * 16 / 8 * 128/130 = 31.5 GB/s
    passes(run(15.0, 2), geforces(2), "31.5 GB/s of PCIe (PHB)"),
    passes(run(5.0, 3), geforces(3, devices=(geforce(0), geforce(1), geforce(2, pcie_width_max=4))), "7.876 GB/s"),
    unknown(run(), gpus(8, pairs=())),
    unknown(run(), gpus(8, pairs=UNLINKED)),
    unknown(run(), gpus(8, *(gpu(index, nvlinks=None) for index in range(8)))),
    unknown(run(), geforces(8, devices=(geforce(0, pcie_width_max=None), *map(geforce, range(1, 8))))),
    unknown(run(None)),
    unknown(run(bus_ids=())),
    unknown(run(), Gpus),
    skips(CPU, "one CPU"),
    skips(run(None, 1)),
    unknown(run(outcome="timed-out")),
    given=(gpus(8), environment()),
)

RATES = {
    "per_s 1": 1000.0,
    "step 1": 0.064,
    "per_s 2": 1500.0,
    "step 2": 0.08533,
    "efficiency": 0.75,
    "all_reduce_gbs": 2.0,
    "input_per_s": 9e5,
}


def rates(replicas: int = 2, **changes: Any) -> SmokeRun:
    return smoke_run("smoke.speed", replicas, smoke_case("throughput", replicas, **{"measures": RATES, **changes}))


def measured(**measures: float) -> SmokeRun:
    return rates(measures={**RATES, **measures})


def per_second(**per_s: float) -> SmokeRun:
    return rates(measures={f"per_s {number[1:]}": rate for number, rate in per_s.items()})


EFFICIENCY = ", scaling efficiency "
ALONE: dict[str, float | None] = {"per_s 1": 1000.0, "step 1": 0.064, "input_per_s": 10_000.0}

test_speed = table(
    "smoke.speed",
    Severity.INFO,
    passes(
        rates(1, measures=ALONE),
        said={
            "1 replica (gpu)": "1,000 examples/s, 64 ms per step",
            "input pipeline": "10,000 examples/s alone, 10 times the rate of the steps: not input-bound",
        },
    ),
    passes(measured(input_per_s=750.0), "0.5 times", unsaid="not input-bound"),
    passes(measured(input_per_s=3000.0), "2 times", "not input-bound"),
    *(
        passes(rates(measures={"per_s 1": 1000.0, "input_per_s": rate}), f": {stated}")
        for rate, stated in (
            (99.94, "99.9 examples/s alone, 0.1 times"),
            (100.0, "100 examples/s alone, 0.1 times"),
            (1000.0, "1,000 examples/s alone, 1 times the rate of the steps: not input-bound"),
            (9900.0, "9,900 examples/s alone, 9.9 times"),
            (15_000.0, "15,000 examples/s alone, 15 times"),
        )
    ),
    passes(rates(measures={**RATES, "per_s 2": 10.0})),  # slow
    passes(per_second(n1=1000.0, n4=3600.0), f"{EFFICIENCY}90%"),
    *(
        passes(per_second(**per_s), unsaid=EFFICIENCY)
        for per_s in ({"n1": 1000.0}, {"n2": 1500.0}, {"n2": 1500.0, "n4": 3600.0})
    ),
    fails(rates(outcome="timed-out")),
    unknown(rates(measures={"efficiency": 1.0})),
)

OPERATIONS: dict[str, float | None] = {
    "matrix product: difference": 0.0,
    "matrix product: difference insisting": 0.0,
    "matrix product: cost": 1.0,
    "sum by segments: difference": 2e-6,
    "sum by segments: difference insisting": 0.0,
    "sum by segments: cost": 3.1,
    "depthwise convolution's gradients: difference": 1e-6,
    "depthwise convolution's gradients: refused": 1.0,
}


def repeated(
    apart: float | None = 0.0, operations: dict[str, float | None] | None = None, **measures: float
) -> SmokeRun:
    cases = (
        smoke_case("seed", 2, measures=measures or {"difference": apart}),
        smoke_case("op-determinism", 2, measures={"difference": 0.0, "cost": 1.25}),
        smoke_case("operations", 2, measures=OPERATIONS if operations is None else operations),
    )
    return smoke_run("smoke.determinism", 2, *cases)


def costing(**costs: float | None) -> SmokeRun:
    """Operations that are equal when repeated, at these costs."""
    measures: dict[str, float | None] = {
        f"{name}: {what}": 0.0 for name in costs for what in ("difference", "difference insisting")
    }
    return repeated(operations=measures | {f"{name}: cost": cost for name, cost in costs.items() if cost})


REFUSED: dict[str, float | None] = {"sum: difference": 0.0, "sum: difference insisting": 0.0, "sum: refused": 1.0}
APART: dict[str, Any] = {
    "difference": 0.5,
    "difference of hidden/kernel": 0.1,
    "difference of out/bias": 0.5,
    "first_step_apart": 4.0,
}
COST = "with enable_op_determinism at most 1.4 times the time."

test_determinism = table(
    "smoke.determinism",
    Severity.WARNING,
    fails(repeated(3e-7), "3e-07", "enable_op_determinism()"),
    fails(repeated(**APART), "0.5, in out/bias, hidden/kernel", "step 4"),
    passes(repeated(3e-7), {"tolerance": 1e-5}),
    fails(
        repeated(operations={**OPERATIONS, "matrix product: difference insisting": 1e-7}),
        "matrix product differs by 1e-07",
    ),
    passes(costing(sum=1.1, product=1.4, mean=1.2), "pass 3 operations: ", COST),
    passes(costing(sum=1.4), "pass 1 operation: equal when repeated: sum; ", COST),
    passes(costing(sum=1.5), "pass sum: ", "equal, 1.5 times the time."),
    passes(repeated(operations=REFUSED), "TensorFlow refuses it."),
    unknown(repeated(None, {}, other=1.0)),
    unknown(repeated(operations={})),
)


def lines(result: Result) -> str:
    return "\n".join(f"{item.subject}: {item.observed}" for item in result.evidence)


def test_measurements_are_evidence(screen: SnapshotAssertion) -> None:
    assert lines(judged("smoke.speed", rates())) == screen


def test_equal_trainings_pass_with_the_cost_of_determinism(screen: SnapshotAssertion) -> None:
    assert lines(judged("smoke.determinism", repeated())) == screen


@pytest.mark.parametrize(("name", "helps"), [("seed", True), ("op-determinism", False)])
def test_fix_is_op_determinism_unless_it_was_used(name: str, *, helps: bool) -> None:
    run = smoke_run("smoke.determinism", 2, smoke_case(name, 2, measures={"difference": 0.5}))
    (found,) = judged("smoke.determinism", run).findings
    assert ("enable_op_determinism()" in found.finding.remedy.summary) is helps
