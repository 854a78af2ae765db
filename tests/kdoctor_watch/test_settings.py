import math
from pathlib import Path
from typing import Any

import pytest

import kdoctor
from helpers.cases import cases


@cases(
    {"every": 0},
    {"every": 2.5},
    {"every": True},
    {"every": "10"},
    {"on_error": "explode"},
    {"on_finding": "print"},
    {"checkpoint": "last"},
    {"checkpoint": 3},
    {"report": 3},
    {"report": ""},
    {"tensorboard": 3},
    {"lock": 3},
    {"stall_s": 0},
    {"stall_s": math.nan},
    {"stall_s": "60"},
    {"interval_s": -1},
    {"interval_s": math.inf},
    {"interval_s": math.nan},
    {"canary": 0},
    {"canary": "often"},
    {"canary": "0s"},
    {"canary": "10 days"},
    {"canary": True},
    {"limits": 3},
    {"limits": {"watch.step-time": 3}},
    {"limits": {"watch.nothing": {}}},
    {"limits": {"watch.step-time": {"speed": 2}}},
    {"limits": {"watch.step-time": {"factor": "2"}}},
    {"limits": {"watch.step-time": {"factor": -1}}},
    {"limits": {"watch.step-time": {"factor": math.nan}}},
    ids=str,
)
def test_wrong_settings_are_refused_before_the_training(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"^{next(iter(settings))}: ") as raised:
        kdoctor.Watch(**settings)
    assert "\n" not in str(raised.value)


def test_usual_settings_are_taken(tmp_path: Path) -> None:
    kdoctor.Watch(
        every=50,
        on_finding=print,
        on_error="stop",
        checkpoint=tmp_path / "last.keras",
        tensorboard=tmp_path,
        report=tmp_path / "watch.json",
        stall_s=60,
        interval_s=0.5,
        canary="10min",
        limits={"watch.step-time": {"factor": 2}, "watch.memory": {"most_bytes": 2**30}},
    )
