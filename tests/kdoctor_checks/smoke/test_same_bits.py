from typing import Any

from helpers.facts import gpus, smoke_case, smoke_run
from helpers.facts.gpus import bus_id
from helpers.rows import Row, fails, passes, table, unknown
from kdoctor.facts import BitDifference, SmokeRun
from kdoctor.model import Severity


def difference(device: int, other: int | None = None, **changes: Any) -> BitDifference:
    found = {"elements": 4096, "differing": 3, "first": 17, "rounds": 5, "found_in": 40, "program": "training"}
    return BitDifference(**{**found, "device": device, "other": other, **changes})


def rows(check: str) -> list[Row]:
    def ran(devices: int, *differences: BitDifference, kind: str = "gpu", **changes: Any) -> SmokeRun:
        measures = {"rounds": 100.0, "hot_s": 30.1, **{f"equal {place}": devices - 1.0 for place in range(devices)}}
        where = tuple(bus_id(place) for place in range(devices))
        fields = {"measures": measures, "programs": ("product float16", "training"), "bus_ids": where, **changes}
        case = smoke_case("all-devices", devices, kind=kind.upper(), bit_differences=differences, **fields)
        return smoke_run(check, devices, case, devices_kind=kind, gpus_seen=devices)

    on_cpu = {"rounds": 9.0, "hot_s": 2.0, "equal 0": 1.0, "equal 1": 1.0}
    undecided = difference(0, 1, decided=False), difference(1, 0, decided=False)
    return [
        *(
            passes(ran(number), gpus(number), of=["2 programs", *(f"GPU {n}" for n in range(number))])
            for number in (1, 2, 8)
        ),
        fails(ran(3, difference(2, 0)), gpus(3), "CUDA_VISIBLE_DEVICES=0,1;", of=["GPU 2"]),
        fails(
            ran(3, difference(1), difference(1, 0, program="product float16")),
            gpus(3),
            "CUDA_VISIBLE_DEVICES=0,2;",
            of=["GPU 1"],
        ),
        # Which GPU is to be left out is known only if most of them agree, or if one changes.
        fails(ran(3, *undecided), gpus(3), commands=(), of=["GPU 0", "GPU 1"]),
        fails(ran(3, *undecided, difference(1)), gpus(3), "CUDA_VISIBLE_DEVICES=0,2;", of=["GPU 0", "GPU 1"]),
        fails(
            ran(3, difference(1, repeats=False)),
            gpus(3),
            ": training: 3 of 4096 elements not as in its first round (in 5 of 100 rounds, first in round 40, ",
            "first at 17); it does not repeat.",
        ),
        unknown(ran(2, programs=()), gpus(2)),
        unknown(ran(2, measures={}), gpus(2)),
        *(
            unknown(ran(2, measures={"rounds": rounds, "hot_s": seconds}), gpus(2))
            for rounds, seconds in ((1.0, 30.0), (50.0, 12.0), (50.0, 30.0))
        ),
        passes(ran(2, kind="cpu", measures=on_cpu)),  # for less time
    ]


test_same_bits, test_same_bits_jax = (
    table(check, Severity.ERROR, *rows(check)) for check in ("smoke.same-bits", "smoke.same-bits-jax")
)
