"""The checks of the clocks, the heat, the limits and the modes of each GPU."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import NOT_SUPPORTED, bus_id, gpu, gpus, lost_gpu, v100
from helpers.rows import fails, judged, passes, skips, table, unknown
from kdoctor.facts import Gpus
from kdoctor.model import Severity
from kdoctor_checks.gpu._clocks import cause, clocks, held, lasting, seen

H100 = "NVIDIA H100 80GB HBM3"
GPU0, GPU1, GPU2, GPU3 = (gpu(index).subject for index in range(4))


def several(*states: dict[str, Any]) -> Gpus:
    return gpus(len(states), *(gpu(index, **state) for index, state in enumerate(states)))


def one(**state: Any) -> Gpus:
    return several(state)


def reasons(*readings: int, mhz: int | None = 345) -> dict[str, Any]:
    return {"clock_event_reasons": readings, "clock_sm_mhz": mhz}


BRAKE, HEAT = "HW Power Brake Slowdown", "HW Thermal Slowdown"
BRAKED = [reasons(*[0x88] * 3, mhz=86)] * 8  # recorded: eight H100 at 86 of 1980 MHz, with healthy PCIe

test_clocks = table(
    "gpu.clocks",
    Severity.ERROR,
    *(passes(several({}, reasons(*[bits] * 3)), "event reasons: ") for bits in (0, 0x1, 0x4, 0x20)),
    passes(several({}, reasons(0x8, 0x0, 0x8))),  # active for a moment
    passes(several({}, reasons(0x80, 0x80, 0x0))),  # gpu.thermal-slowdown
    *(fails(several({}, reasons(*[bits] * 3)), of=[GPU1]) for bits in (0x8, 0x88, 0x40)),
    fails(several({}, reasons(*[0x80] * 3))),  # the child without its parent
    fails(several({}, reasons(0x8, 0x8))),
    unknown(several({}, reasons(0x8)), "single reading"),  # a dump has one reading
    unknown(several({}, reasons())),
    unknown(several({}, {"clock_event_reasons": None, "clock_sm_mhz": 1980, "clock_sm_max_mhz": 1980})),
    fails(several(*BRAKED), BRAKE, "SM clock 86 of 1980 MHz.", of=8),
    fails(
        several(*[{}] * 5, reasons(0x40, 0x40, 0x40), {}, {}), "slowed down by hardware", HEAT, of=["GPU 5"], evidence=7
    ),
    fails(
        several(*(reasons(*[0x88] * 3, mhz=speed) for speed in (86, 84, 90)), reasons(*[0x48] * 3, mhz=900)),
        "; nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE,CLOCK.",
        briefs=[*[f"held at 84 to 90 of 1980 MHz by {BRAKE}"] * 3, f"held at 900 of 1980 MHz by {HEAT}"],
    ),
    fails(several(reasons(0x88, mhz=None)), briefs=[f"slowed down by {BRAKE}"]),
)


@cases(((), 0, 0), ((8, 8), 8, 8), ((8, 9, 12), 8, 13), ((1, 2), 0, 3))
def test_events_that_last_were_in_each_reading(readings: tuple[int, ...], always: int, ever: int) -> None:
    assert (lasting(gpu(clock_event_reasons=readings)), seen(gpu(clock_event_reasons=readings))) == (always, ever)


def test_both_causes_of_the_hardware_are_named_together() -> None:
    heat, brake, hardware = 0x40, 0x80, 0x08  # nvml.h: nvmlClocksEventReason...
    assert "power brake" in cause(heat | brake | hardware)
    assert cause(heat | brake) != cause(heat) != cause(brake) != cause(hardware)


def test_clocks_are_stated_where_all_are_known() -> None:
    first, second = gpu(0, clock_sm_mhz=345), gpu(1, clock_sm_mhz=500)
    assert held([first, second], 0x40).startswith("held at 345 to 500 of 1980 MHz by ")
    assert held([first, replace(second, clock_sm_mhz=None)], 0x40).startswith("slowed down by ")
    assert held([first, replace(second, clock_sm_max_mhz=1755)], 0x40).startswith("slowed down by ")
    assert clocks(first) == ", SM clock 345 of 1980 MHz"
    assert clocks(replace(first, clock_sm_mhz=None)) == ""
    assert clocks(replace(first, clock_sm_max_mhz=None)) == ""


def hot(*margins: int | None, **state: Any) -> Gpus:
    return several(*({"temperature_margin_c": margin, **state} for margin in margins))


def volta(**change: Any) -> Gpus:
    """A V100 slows down at 87 degrees Celsius."""
    return gpus(2, v100(0), v100(1, **change))


HEAT_FIELDS = ("temperature_margin_c", "temperature_c", "temperature_slowdown_c")


def silent(error: str) -> dict[str, Any]:
    return {**dict.fromkeys(HEAT_FIELDS), "errors": dict.fromkeys(HEAT_FIELDS, error)}


THROTTLING = "throttling threshold"

test_temperature = table(
    "gpu.temperature",
    Severity.WARNING,
    passes(gpus(2), f"34 C, 51 C below the {THROTTLING}"),  # not the recorded thresholds of -2 and -8
    fails(hot(0), f"34 C, 0 C below the {THROTTLING}"),
    fails(hot(-1), f"34 C, 1 C above the {THROTTLING}"),
    fails(hot(0, 3, -2), briefs=[*[f"0 to 3 C below the {THROTTLING}"] * 2, f"above the {THROTTLING}"]),
    fails(hot(5, 2), f"  2 C below the {THROTTLING}.", of=[GPU1]),
    fails(hot(2, fan_speed_percent=0), explained_by=["gpu.fan"]),
    fails(hot(2, clock_event_reasons=(0x20,) * 3), explained_by=["gpu.thermal-slowdown"]),
    fails(hot(2, clock_event_reasons=(0x40,) * 3), explained_by=["gpu.clocks"]),
    fails(volta(temperature_c=83)),
    fails(volta(temperature_c=56, temperature_operating_max_c=57), f"56 C, 1 C below the {THROTTLING}"),
    passes(volta(temperature_c=56, temperature_operating_max_c=83), f"56 C, 27 C below the {THROTTLING}"),
    unknown(volta(temperature_c=None, errors={"temperature_c": "Unknown Error"}), "temperature (Unknown Error)."),
    unknown(volta(temperature_slowdown_c=None)),
    unknown(hot(51, None, 51), of=[GPU1], evidence=2),
    unknown(several(silent("Unknown Error"))),
    unknown(several({}, silent(NOT_SUPPORTED))),
    unknown(several(silent(NOT_SUPPORTED), silent(NOT_SUPPORTED))),
    skips(several(*[silent(NOT_SUPPORTED) | {"virtualization_mode": "vgpu"}] * 2)),
)


def limits(*watts: float | None) -> Gpus:
    return several(*({"enforced_power_limit_w": limit} for limit in watts))


test_equal_power_limits = table(
    "gpu.equal-power-limits",
    Severity.WARNING,
    fails(limits(500, 700), of=[GPU0]),  # the lower one of two
    fails(limits(700, 600, 600), "Expected: 600 W", of=[GPU0]),  # the higher one of three
    passes(gpus(2, gpu(0), v100(1))),  # of two models
    passes(limits(700, 700, 698), {"tolerance_w": 2}),
    fails(
        limits(700, 700, 500, 600),
        "Expected: 700 W",
        f"sudo nvidia-smi -i {bus_id(2)} -pl 500",
        f"sudo nvidia-smi -i {bus_id(3)} -pl 600",
        "  power limit 500 to 600 W, most have 700 W.",
        commands=(f"sudo nvidia-smi -i {bus_id(2)},{bus_id(3)} -pl 700",),
    ),
    unknown(limits(700, None)),
    unknown(gpus(2, gpu(0), lost_gpu(1))),
    skips(gpus(1)),
)

LOW = {"enforced_power_limit_w": 100.0}

test_power_limit = table(
    "gpu.power-limit",
    Severity.INFO,
    fails(  # those with another default have another command
        several(LOW, {"default_power_limit_w": 300.0, **LOW}, {}),
        f"sudo nvidia-smi -i {bus_id(1)} -pl 100",
        "  power limit 100 W, default 300 W.",
        commands=(f"sudo nvidia-smi -i {bus_id(0)} -pl 700", f"sudo nvidia-smi -i {bus_id(1)} -pl 300"),
        rollback=(f"sudo nvidia-smi -i {bus_id(0)} -pl 100",),
    ),
    passes(one(enforced_power_limit_w=560.0), {"least_share": 0.8}),
    *(fails(one(**LOW), {"least_share": share}, expected=f"at least {700 * share:g} W") for share in (0.5, 0.8)),
)

FEW = {"ecc_uncorrected_volatile": 2, "ecc_uncorrected_aggregate": 7}

test_ecc_errors = table(
    "gpu.ecc-errors",
    Severity.ERROR,
    passes(gpus(1), briefs=["no memory errors"]),
    passes(one(**FEW), {"most": 2}, ", 7 over the GPU's lifetime.", briefs=[""]),
    fails(one(**FEW), {"most": 1}, expected="at most 1"),
    fails(one(ecc_uncorrected_volatile=2, ecc_uncorrected_aggregate=None), unsaid="lifetime"),
)

test_mig_mode_pending = table(
    "gpu.mig-mode-pending",
    Severity.WARNING,
    *(
        fails(
            one(mig_mode=now, mig_mode_pending=not now),
            commands=(f"sudo nvidia-smi -mig {int(now)}",),
            rollback=(f"sudo nvidia-smi -mig {int(not now)}",),
        )
        for now in (False, True)
    ),
    fails(  # each in the opposite direction
        several({"mig_mode": True, "mig_mode_pending": False}, {"mig_mode": False, "mig_mode_pending": True}),
        commands=tuple(f"sudo nvidia-smi -i {bus_id(index)} -mig {mode}" for index, mode in ((0, 1), (1, 0))),
    ),
)

test_ecc_mode = table(
    "gpu.ecc-mode",
    Severity.INFO,
    *(
        fails(
            one(ecc_mode=False, ecc_mode_pending=pending),
            rollback=(f"sudo nvidia-smi -i {bus_id(0)} -e {int(pending)}", "sudo reboot"),
        )
        for pending in (True, False)
    ),
)


@pytest.mark.parametrize("pending", [True, False])
def test_change_of_ecc_that_waits_for_a_restart_is_in_the_familys_line(*, pending: bool) -> None:
    (found,) = judged("gpu.ecc-mode", one(ecc_mode=False, ecc_mode_pending=pending)).findings
    assert found.finding.noted is pending


test_persistence_mode = table(
    "gpu.persistence-mode",
    Severity.INFO,
    *(
        fails(
            one(persistence_mode=not expected),
            {"expected": expected},
            expected=f"persistence mode {'on' if expected else 'off'}",
            commands=(f"sudo nvidia-smi -pm {int(expected)}",),
            rollback=(f"sudo nvidia-smi -pm {int(not expected)}",),
        )
        for expected in (True, False)
    ),
)


def stopped(*degrees: int | None) -> Gpus:
    return gpus(len(degrees), *(v100(n, fan_speed_percent=0, temperature_c=heat) for n, heat in enumerate(degrees)))


test_fan = table(
    "gpu.fan",
    Severity.WARNING,
    passes(stopped(49), {"may_stand_below_c": 50}, briefs=[""]),
    fails(stopped(50), {"may_stand_below_c": 50}, briefs=["fan stopped at 50 C"]),
    fails(stopped(None, 90), "nvidia-smi -i 0000:20:00.0 ", of=[GPU1], unjudged=[GPU0]),
    skips(gpus(8), H100),
)
