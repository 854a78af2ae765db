from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import gpu, gpus, smoke_case, smoke_run
from helpers.facts.gpus import bus_id
from kdoctor.check import Check
from kdoctor.facts import BitDifference, SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.same_bits_jax import same_bits_jax
from kdoctor_checks.smoke.same_bits import same_bits

BOTH = pytest.mark.parametrize("check", [same_bits, same_bits_jax], ids=lambda check: check.id)


def ran(check: Check, devices: int, *differences: BitDifference, kind: str = "gpu", **changes: Any) -> SmokeRun:
    measures = {"rounds": 100.0, "hot_s": 30.1, **{f"equal {place}": devices - 1.0 for place in range(devices)}}
    where = tuple(bus_id(place) for place in range(devices))
    fields = {"measures": measures, "programs": ("product float16", "training"), "bus_ids": where, **changes}
    case = smoke_case("all-devices", devices, kind=kind.upper(), bit_differences=differences, **fields)
    return smoke_run(check.id, devices, case, devices_kind=kind, gpus_seen=devices)


def difference(device: int, other: int | None = None, **changes: Any) -> BitDifference:
    found = {"elements": 4096, "differing": 3, "first": 17, "rounds": 5, "found_in": 40, "program": "training"}
    return BitDifference(**{**found, "device": device, "other": other, **changes})


@BOTH
@pytest.mark.parametrize("devices", [1, 2, 8])
def test_equal_bits_pass(check: Check, devices: int) -> None:
    result = compute_check(check, ran(check, devices), gpus(devices))
    assert result.status is Status.PASS
    assert [item.subject[:5] for item in result.evidence[1:]] == [f"GPU {place}" for place in range(devices)]


@BOTH
@cases(
    ((difference(2, 0),), ["GPU 2"]),
    ((difference(1), difference(1, 0, program="product float16")), ["GPU 1"]),
    ((difference(0, 1, decided=False), difference(1, 0, decided=False)), ["GPU 0", "GPU 1"]),
)
def test_other_bits_fail(check: Check, differences: tuple[BitDifference, ...], wrong: list[str]) -> None:
    machine = gpus(3, *(gpu(place) for place in range(3)))
    result = compute_check(check, ran(check, 3, *differences), machine)
    assert [item.finding.subject[:5] for item in result.findings] == wrong
    # Which GPU is to be left out is known only if most of them agree, or if one changes.
    decided = all(one.decided for one in differences)
    kept = ",".join(str(place) for place in range(3) if f"GPU {place}" not in wrong)
    hidden = [item.finding.remedy.commands for item in result.findings]
    assert [f"CUDA_VISIBLE_DEVICES={kept}" in " ".join(lines) for lines in hidden] == [decided] * len(wrong)


@BOTH
def test_difference_says_how_many_elements_and_when(check: Check) -> None:
    result = compute_check(check, ran(check, 3, difference(1, repeats=False)), gpus(3))
    observed = result.findings[0].finding.observed
    assert all(part in observed for part in ("training", "3 of 4096", "17", "5 of 100", "40", "not repeat"))


@BOTH
@cases(
    {"measures": {}},
    {"programs": ()},
    {"measures": {"rounds": 1.0, "hot_s": 30.0}},
    {"measures": {"rounds": 50.0, "hot_s": 12.0}},
    {"measures": {"rounds": 50.0, "hot_s": 30.0}},
)
def test_what_was_not_compared_is_unknown(check: Check, changes: dict[str, Any]) -> None:
    assert compute_check(check, ran(check, 2, **changes), gpus(2)).status is Status.UNKNOWN


@BOTH
def test_devices_of_a_cpu_are_compared_for_less_time(check: Check) -> None:
    measures = {"rounds": 9.0, "hot_s": 2.0, "equal 0": 1.0, "equal 1": 1.0}
    assert compute_check(check, ran(check, 2, kind="cpu", measures=measures)).status is Status.PASS
