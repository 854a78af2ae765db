"""Summaries of samples are correct, and their size does not depend on the number of samples."""

import itertools
import json
from collections.abc import Callable
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.cases import cases
from kdoctor.facts import Spread
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children
from kdoctor.smoke import gpu_sampler
from kdoctor.smoke.gpu_samples import MOST_POINTS, CaseNow, GpuTally

numbers = st.lists(st.integers(0, 100), min_size=1, max_size=400)


def tally(*values: float, field: str = "temperature_c", every_s: float = 0.5, late: bool = True) -> GpuTally:
    found = GpuTally(0, every_s, 100.0)
    for number, value in enumerate(values):
        found.add(100.0 + number * every_s, {field: value}, None, late=late)
    return found


@given(numbers)
def test_minimum_mean_and_maximum(values: list[int]) -> None:
    use = tally(*values).facts(300.0).during
    assert use.samples == len(values)
    assert use.temperature_c == Spread(low=min(values), mean=round(sum(values) / len(values), 3), high=max(values))


@given(numbers)
def test_series_has_limited_points_and_keeps_the_mean(values: list[int]) -> None:
    series = tally(*values).facts(300.0).series
    assert series is not None
    assert len(series.temperature_c) <= MOST_POINTS
    joined = int(series.every_s / 0.5)
    assert joined in {1, 2, 4}
    expected = [values[start : start + joined] for start in range(0, len(values), joined)]
    assert series.temperature_c == tuple(round(sum(part) / len(part), 2) for part in expected)


def test_hours_take_as_much_memory_as_minutes() -> None:
    def size(samples: int) -> int:
        found = GpuTally(0, 0.5, 0.0)
        for number in range(samples):
            reading = {"temperature_c": 41.5, "power_draw_w": 70.5, "clock_event_reasons": number % 512}
            found.add(number * 0.5, reading, CaseNow(scenario="s", case="c", began=0.0), late=True)
        return len(json.dumps(asdict(found.facts(samples * 0.5))))

    assert size(20_000) < 1.2 * size(240)


def test_gap_in_the_samples_is_reported_and_in_the_series() -> None:
    found = GpuTally(0, 0.5, 100.0)
    for at in (100.0, 102.0):
        found.add(at, {"temperature_c": 41}, None, late=True)
    facts = found.facts(103.0)
    assert facts.series is not None
    assert [facts.longest_gap_s, found.facts(110.0).longest_gap_s] == [2, 8]
    assert list(facts.series.temperature_c) == [41, None, None, None, 41]


def test_duration_of_a_reason_is_limited_after_a_hang() -> None:
    found = GpuTally(0, 0.5, 0.0)
    for at, mask in ((0.0, 0x40), (0.5, 0x40), (1.0, 0x40), (1.5, 0x0), (2.0, 0x48), (12.0, 0x40)):
        found.add(at, {"clock_event_reasons": mask}, None, late=True)
    heat, parent = sorted(found.facts(12.0).during.events, key=lambda event: -event.bit)
    # Five samples: 0.5 four times and, after a gap of ten seconds, at most two intervals.
    assert (heat.bit, heat.seconds, heat.samples, heat.in_a_row) == (0x40, 3.0, 5, 3)
    assert (parent.bit, parent.seconds, parent.samples, parent.in_a_row) == (0x8, 0.5, 1, 1)


def test_counters_become_rates_except_after_a_reset() -> None:
    found = GpuTally(0, 0.5, 0.0)
    for at, count in ((0.5, 1000), (1.0, 2000), (1.5, 10), (2.0, 10)):
        found.add(at, {"pcie_sent_bytes": count}, None, late=True)
    assert found.facts(2.0).during.pcie_sent_bytes_s == Spread(low=0, mean=1000, high=2000)


def test_before_and_during_are_separate() -> None:
    found = tally(30, 31, late=False)
    found.add(105.0, {"temperature_c": 80}, None, late=True)
    facts = found.facts(106.0)
    assert (facts.before.samples, facts.during.samples) == (2, 1)
    assert facts.before.temperature_c == Spread(low=30, mean=30.5, high=31)


@given(st.lists(st.floats(0.0, 2.0), min_size=1))
def test_reading_counts_from_when_it_began(took: list[float]) -> None:
    """It may wait for the driver, and arrive when the next case has begun."""
    clock, sent = itertools.count(100), list[Callable[[object], None]]()

    def child(*_: object, on_record: Callable[[object], None], **__: object) -> object:
        sent.append(on_record)
        return SimpleNamespace(ended=None, failure=None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_sampler, "BackgroundProcess", child)
        patch.setattr(gpu_sampler, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
        sampler = gpu_sampler.Sampler(Context(python="", chosen_by="", environ={}, children=Children()), deadline_s=1.0)
        for number, took_s in enumerate(took):
            sampler.enter("s", str(number), alone=True)
            sent[0]({"gpu": 0, "sample": {"memory_used_bytes": 5}, "errors": {}, "took_s": took_s})
        (gpu,) = sampler.facts().gpus
    # A second passes between the beginning of a case and the arrival of its reading.
    assert [one.case for one in gpu.cases] == [str(number) for number, took_s in enumerate(took) if took_s <= 1.0]


@cases(
    (9.9, 0, 0, False),  # read before the case began
    (10.0, 1, 0, False),  # the driver still averages the time before
    (10.9, 1, 0, False),
    (11.0, 1, 0, True),
    (12.0, 1, 1, True),
)
def test_sample_belongs_to_the_case_in_which_it_was_read(
    began: float, samples: int, training: int, *, busy: bool
) -> None:
    found = GpuTally(0, 0.5, 0.0)
    now = CaseNow(scenario="s", case="c", began=10.0, trains_since=12.0)
    found.add(began, {"utilization_gpu_percent": 90, "memory_used_bytes": 5}, now, late=True)
    cases = found.facts(13.0).cases
    assert len(cases) == samples
    if samples:
        assert (cases[0].training_samples, cases[0].utilization_gpu_percent is not None) == (training, busy)
        assert cases[0].memory_used_bytes == Spread(low=5, mean=5, high=5)
