"""The recorder of steps, with a clock that the tests set."""

import math
import statistics
import threading
from typing import Any

import pytest

from kdoctor_watch.recorder import SKIPPED_STEPS, Recorder


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("kdoctor_watch.recorder.perf_counter", made)
    return made


def run(recorder: Recorder, clock: Clock, *seconds: float) -> None:
    """Steps of these lengths, after those before."""
    for duration in seconds:
        recorder.end(recorder.step + 1)
        recorder.begin(recorder.step + 1)
        clock.now += duration
    recorder.end(recorder.step + 1)


def take(recorder: Recorder, step: int, logs: dict[str, Any]) -> None:
    """A step has ended, and what it reported is read."""
    recorder.report(step, logs)
    recorder.read_reports()


def test_slower_steps_are_compared_with_the_beginning(clock: Clock) -> None:
    recorder = Recorder(stall_s=100)
    run(recorder, clock, *[3.0] * SKIPPED_STEPS, *[0.1] * 100, *[0.15] * 99)
    assert recorder.facts().slowest_s is None  # 99 steps are too few
    run(recorder, clock, 0.15)
    facts = recorder.facts()
    assert facts.baseline_s == pytest.approx(0.1)
    assert facts.recent_s == facts.slowest_s == pytest.approx(0.15)
    run(recorder, clock, *[0.1] * 100)
    facts = recorder.facts()
    assert facts.recent_s == pytest.approx(0.1)
    assert facts.slowest_s == pytest.approx(0.15)
    assert facts.slowest_at == 204


def test_fast_steps_are_compared_over_ten_seconds(clock: Clock) -> None:
    recorder = Recorder(stall_s=100)
    run(recorder, clock, *[0.01] * (SKIPPED_STEPS + 998))
    assert recorder.facts().baseline_s is None
    run(recorder, clock, *[0.01] * 3)
    assert recorder.facts().baseline_s == pytest.approx(0.01)


def test_several_steps_at_once_share_their_time(clock: Clock) -> None:
    recorder = Recorder(stall_s=100)
    for step in range(0, 8 * (SKIPPED_STEPS + 200), 8):
        recorder.end(step)
        recorder.begin(step)
        clock.now += 0.8
    assert recorder.step_s == pytest.approx(0.1)


def begin(recorder: Recorder, step: int) -> None:
    """As the session begins a step."""
    if not recorder.goes_on(step):
        recorder.end(step)
        recorder.begin(step)


def test_short_steps_are_timed_together_and_counted_each(clock: Clock) -> None:
    recorder = Recorder(stall_s=100)
    for step in range(3000):
        begin(recorder, step)
        clock.now += 0.004
    begin(recorder, 3000)
    facts = recorder.facts()
    assert facts.steps == 3001
    assert facts.baseline_s == pytest.approx(0.004)
    # A block of 13 steps is the shortest of 50 ms. The first five do not count, and the last one has not ended.
    assert facts.timed == 13 * (3000 // 13 - SKIPPED_STEPS)


def test_block_ends_before_a_step_that_is_due(clock: Clock) -> None:
    recorder = Recorder(stall_s=100)
    assert not recorder.goes_on(0)
    recorder.begin(0, due=3)
    assert [recorder.goes_on(step) for step in (1, 2, 3)] == [True, True, False]
    recorder.begin(3)
    recorder.end_block_soon()
    assert not recorder.goes_on(4)
    recorder.begin(4)
    clock.now += 0.1
    assert not recorder.goes_on(5)


def test_values_are_read_at_the_end_of_a_block() -> None:
    recorder = Recorder(stall_s=100)
    recorder.begin(0)
    recorder.report(0, {"loss": 1.0})
    recorder.report(1, {"loss": math.nan})
    recorder.report(2, {"loss": math.nan})
    assert (recorder.steps_read, recorder.bad) == (0, {})
    recorder.end(3)
    assert recorder.steps_read == 3
    assert recorder.bad["log", "loss"].step == 1


def test_each_report_is_read_once_by_several_threads() -> None:
    recorder, number = Recorder(stall_s=100), 20_000

    def read() -> None:
        for _ in range(2000):
            recorder.read_reports()

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for step in range(number):
        recorder.report(step, {"loss": object()})
    for reader in readers:
        reader.join()
    recorder.read_reports()
    ((_, steps, _),) = recorder.pending()
    assert sorted(steps) == list(range(number))


def test_step_that_begins_after_the_last_batch_does_not_count(clock: Clock) -> None:
    recorder = Recorder(stall_s=100)
    for step in range(8):
        begin(recorder, step)
        clock.now += 0.01
        recorder.report(step, {"loss": 1.0})
    begin(recorder, 8)
    recorder.end()
    assert (recorder.newest_reported, recorder.facts().steps) == (7, 8)


def test_last_short_steps_of_an_epoch_are_counted_each(clock: Clock) -> None:
    recorder = Recorder(stall_s=100)
    run(recorder, clock, *[0.1] * SKIPPED_STEPS)
    for step in range(SKIPPED_STEPS, SKIPPED_STEPS + 3):
        begin(recorder, step)
        clock.now += 0.01
        take(recorder, step, {"loss": 1.0})
    clock.now += 1000
    recorder.end()
    assert recorder.facts().timed == 3
    assert recorder.step_s == pytest.approx(0.01)


def test_last_execution_of_several_steps_counts_each(clock: Clock) -> None:
    recorder = Recorder(stall_s=100)
    run(recorder, clock, *[0.1] * SKIPPED_STEPS)
    recorder.begin(SKIPPED_STEPS)
    clock.now += 0.8
    take(recorder, SKIPPED_STEPS + 7, {"loss": 1.0})
    recorder.end()
    assert recorder.step_s == pytest.approx(0.1)


def test_stall_among_short_steps_has_its_own_number(clock: Clock) -> None:
    recorder = Recorder(stall_s=10)
    run(recorder, clock, *[0.01] * 50)
    begin(recorder, 50)
    clock.now += 0.01
    begin(recorder, 51)
    clock.now += 11
    recorder.look_for_stall()
    assert [stall.step for stall in recorder.facts().stalls] == [51]


def test_time_between_epochs_does_not_count(clock: Clock) -> None:
    recorder = Recorder(stall_s=10)
    run(recorder, clock, *[0.1] * 50)
    clock.now += 1000
    recorder.look_for_stall()
    run(recorder, clock, *[0.1] * 50)
    assert recorder.facts().stalls == ()
    assert recorder.step_s == pytest.approx(0.1)


def test_step_without_end_is_a_stall_with_its_line(clock: Clock) -> None:
    recorder = Recorder(stall_s=10)
    run(recorder, clock, *[0.1] * 50)
    recorder.begin(50)
    clock.now += 9
    recorder.look_for_stall()
    assert recorder.facts().stalls == ()
    clock.now += 2
    recorder.look_for_stall()
    (stall,) = recorder.facts().stalls
    assert (stall.step, stall.seconds, stall.ended) == (50, 11.0, False)
    assert "recorder.py" in stall.where
    recorder.end(51)
    assert recorder.facts().stalls[0].ended


def test_first_step_may_take_ten_times_as_long(clock: Clock) -> None:
    recorder = Recorder(stall_s=10)
    run(recorder, clock, 99.0, 11.0)
    assert [stall.step for stall in recorder.facts().stalls] == [1]


def test_step_that_is_slow_as_all_others_is_no_stall(clock: Clock) -> None:
    recorder = Recorder(stall_s=10)
    run(recorder, clock, *[8.0] * 120, 150.0, 170.0)
    assert [stall.step for stall in recorder.facts().stalls] == [121]


def test_first_step_that_is_not_finite_is_kept() -> None:
    recorder = Recorder(stall_s=10)
    take(recorder, 0, {"loss": 1.0})
    take(recorder, 2, {"loss": math.inf})  # Keras may call this from another thread, in another order
    take(recorder, 1, {"loss": math.nan, "accuracy": 0.5})
    assert recorder.bad["log", "loss"].step == 1
    assert recorder.bad["log", "loss"].finite_at == 0
    assert recorder.steps_read == 3
    assert list(recorder.log_names) == ["loss", "accuracy"]


def test_tensors_are_read_later() -> None:
    recorder = Recorder(stall_s=10)
    value = object()
    take(recorder, 0, {"loss": value})
    take(recorder, 1, {"loss": value, "other": value})
    assert recorder.steps_read == 0
    assert list(recorder.pending()) == [("loss", [0, 1], [value, value]), ("other", [1], [value])]
    assert list(recorder.pending()) == []


def test_memory_of_a_recorder_has_a_limit(clock: Clock) -> None:
    recorder = Recorder(stall_s=1000)
    run(recorder, clock, *[0.0001] * 25_000)
    facts = recorder.facts()
    assert len(recorder._baseline) + len(recorder._recent) == 20_000  # what it keeps
    assert facts.timed == 25_000 - SKIPPED_STEPS
    assert facts.recent_s == pytest.approx(statistics.median([0.0001]))


def test_callbacks_after_the_last_step_of_an_epoch_are_not_a_stall(clock: Clock) -> None:
    recorder = Recorder(stall_s=10)
    run(recorder, clock, *[0.1] * 50)
    recorder.begin(50)
    clock.now += 0.1
    take(recorder, 50, {"loss": 1.0})
    clock.now += 1000  # a checkpoint is saved
    recorder.look_for_stall()
    recorder.end()
    assert recorder.facts().stalls == ()
    assert recorder.step_s == pytest.approx(0.1)


def test_report_of_the_step_before_does_not_end_the_newest_one(clock: Clock) -> None:
    recorder = Recorder(stall_s=10)
    run(recorder, clock, *[0.1] * 50)
    recorder.begin(50)
    take(recorder, 49, {"loss": 1.0})
    clock.now += 1000
    recorder.look_for_stall()
    assert [stall.step for stall in recorder.facts().stalls] == [50]


@pytest.mark.parametrize("as_number", [float, lambda value: [value]], ids=["numbers", "tensors"])
def test_steps_that_run_at_once_are_finite_since_the_report_before(as_number: Any) -> None:
    recorder = Recorder(stall_s=10)
    for step, loss in ((4, 1.0), (9, 1.0), (14, math.nan)):
        take(recorder, step, {"loss": as_number(loss)})
    for name, steps, values in recorder.pending():
        for step, (value,) in zip(steps, values, strict=True):
            recorder.note(name, step, finite=math.isfinite(value))
    assert (recorder.bad["log", "loss"].step, recorder.bad["log", "loss"].finite_at) == (14, 9)
