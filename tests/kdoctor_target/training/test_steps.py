"""The phases of a training that its case reports."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from helpers.cases import cases
from kdoctor_target.runner.case import Case
from kdoctor_target.runner.phases import progress_of, where
from kdoctor_target.training.steps import Steps, step_seconds, traces_of


@pytest.fixture
def events() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def case(events: io.StringIO) -> Case:
    made = Case(events, "cpu", 2, stem=Path("stem"), deadline_s=1.0)
    made.phase("build")
    made.phase("data")
    return made


def phases(events: io.StringIO) -> list[tuple[str | None, str | None]]:
    """The phases that began, each with the phase that it finished."""
    read = [json.loads(line) for line in events.getvalue().splitlines()]
    return [(event["phase"], event.get("finished")) for event in read if "phase" in event]


def test_each_step_finishes_the_previous_one(case: Case, events: io.StringIO) -> None:
    steps = Steps(case, traces=2)
    step = steps.watch_tracing(lambda: None)
    for number in range(3):
        steps.begin()
        if number == 0:
            step()  # the trace of each replica in sequence
            assert phases(events)[-1] == ("trace", "data")
            step()
        steps.end()
    case.phase("inspect")
    assert phases(events) == [
        ("build", None),
        ("data", "build"),
        ("trace", "data"),
        ("first step", "trace"),
        ("between steps", "first step"),
        ("step 2", None),
        ("between steps", "step 2"),
        ("step 3", None),
        ("between steps", "step 3"),
        ("inspect", None),
    ]
    assert len(steps.seconds) == 3


def test_retracing_does_not_finish_a_step(case: Case, events: io.StringIO) -> None:
    steps = Steps(case)
    step = steps.watch_tracing(lambda: None)
    for _ in range(2):
        steps.begin()
        step()
        steps.end()
    assert phases(events)[-5:] == [
        ("between steps", "first step"),
        ("step 2", None),
        ("trace", None),
        ("step 2", "trace"),
        ("between steps", "step 2"),
    ]


def test_error_in_trace_keeps_phase_trace(case: Case, events: io.StringIO) -> None:
    steps = Steps(case)
    steps.begin()
    with pytest.raises(ZeroDivisionError):
        steps.watch_tracing(lambda: 1 / 0)()
    assert phases(events)[-1] == ("trace", "data")


class DefaultStrategy:
    """``Model.distribute_strategy`` of Keras 2 without a strategy: the default one of tf.distribute, with its error."""

    @property
    def extended(self) -> DefaultStrategy:
        return self

    @property
    def worker_devices(self) -> tuple[str, ...]:
        raise RuntimeError("worker_devices() method unsupported by default tf.distribute.Strategy.")


def test_trace_without_strategy_counts_once() -> None:
    assert traces_of(None) == 1
    assert traces_of(DefaultStrategy()) == 1


def test_step_seconds_are_median_after_first_epoch() -> None:
    assert step_seconds([9.0, 5.0, 1.0, 3.0]) == {"first_step_s": 9.0, "step_s": 3.0}


@cases(
    ({}, ""),
    ({"phase": "trace"}, "in phase trace"),
    ({"phase": "trace", "finished": "data"}, "in phase trace (last finished: data)"),
    ({"phase": "first step", "finished": "trace"}, "in the first step (last finished: trace)"),
    ({"phase": "step 4", "finished": "step 3"}, "in step 4 (last finished: step 3)"),
    ({"phase": "between steps", "finished": "step 3"}, "between steps (last finished: step 3)"),
)
def test_where_describes_phase_and_last_finished(facts: dict[str, str], expected: str) -> None:
    assert where(facts) == expected


def test_progress_of_keeps_phase_fields_only() -> None:
    assert progress_of({"phase": "save", "facts": {}}) == {"phase": "save"}
