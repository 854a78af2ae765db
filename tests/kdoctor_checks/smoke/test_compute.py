from typing import Any

from helpers.facts import gpu, gpus, smoke_case, smoke_run
from helpers.facts.gpus import bus_id
from helpers.rows import Row, fails, passes, skips, table, unknown
from kdoctor.facts import Gpus, SmokeRun
from kdoctor.model import Severity


def machine(count: int, **changes: Any) -> Gpus:
    return gpus(count, *(gpu(index, **changes) for index in range(count)))


def rows(check: str) -> list[Row]:
    def ran(*tflops: float | None, copies: tuple[float, ...] = (), **changes: Any) -> SmokeRun:
        copied = copies or (2900.0,) * len(tflops)
        measures = {f"tflops {place}": rate for place, rate in enumerate(tflops)}
        measures |= {f"copy_gbs {place}": rate for place, rate in enumerate(copied)}
        where = tuple(bus_id(place) for place in range(len(tflops)))
        case = smoke_case("each-device", len(tflops), kind="GPU", measures=measures, bus_ids=where, **changes)
        return smoke_run(check, len(tflops), case, devices_kind="gpu", gpus_seen=len(tflops))

    on_cpu = smoke_case("each-device", 1, kind="CPU", measures={"tflops 0": 0.01, "copy_gbs 0": 5.0})
    half = {"slowest_share": 0.5}
    return [
        passes(ran(700.0, 710.0, 690.0, 705.0), machine(4)),
        passes(ran(700.0, 710.0, 610.0, 705.0), machine(4)),
        fails(ran(700.0, 710.0, 590.0, 705.0), machine(4), of=["GPU 2"]),
        fails(ran(700.0, 710.0, 690.0, copies=(2900.0, 1450.0, 2880.0)), machine(3), of=["GPU 1"]),
        fails(ran(700.0, 350.0), machine(2), of=["GPU 1"]),
        passes(ran(700.0, 700.0, 350.0), machine(3), half),
        fails(ran(700.0, 700.0, 349.0), machine(3), half, of=["GPU 2"]),
        # Of different models: 90 of 121 TFLOP/s is 74%; 700 of 989 is 71%, 2900 of 3350 GB/s is 87%.
        skips(ran(700.0, 90.0), gpus(2, gpu(0), gpu(1, name="NVIDIA L4")), "71% and 87%", "74%"),
        skips(ran(700.0), machine(1), "reason: GPU 0"),
        passes(ran(700.0, 710.0), machine(2, name="NVIDIA Next"), unsaid="published"),
        unknown(ran(700.0, None, 705.0), machine(3), of=["GPU 1"], evidence=2),
        unknown(ran(700.0, None), machine(2), of=["GPU 0", "GPU 1"]),
        unknown(ran(), machine(2), "no device was measured"),
        unknown(ran(700.0, 350.0), of=["GPU", "GPU"]),
        unknown(ran(700.0, 350.0), machine(2, name=None), of=["GPU", "GPU"]),
        fails(ran(700.0, outcome="died", signal="SIGSEGV")),
        skips(smoke_run(check, 1, on_cpu, devices_kind="cpu")),
    ]


test_compute, test_compute_jax = (
    table(check, Severity.WARNING, *rows(check)) for check in ("smoke.compute", "smoke.compute-jax")
)
