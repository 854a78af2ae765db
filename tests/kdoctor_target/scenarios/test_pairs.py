"""Each pair of replicas with the real TensorFlow, on logical CPU devices, with planted defects."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from helpers import smoke
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Status
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.smoke.session import SmokeSettings
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.pairs import pairs

_SPOILT_DEVICE = """
import tensorflow as tf
from tensorflow.python.distribute import cross_device_ops, values

def of(value):
    if not any("CPU:3" in one.device for one in getattr(value, "values", ())):
        return value
    first, *others = value.values
    return values.PerReplica((first * 1.5, *others))

def spoil(name, change):
    plain = getattr(cross_device_ops.CrossDeviceOps, name)
    setattr(
        cross_device_ops.CrossDeviceOps,
        name,
        lambda self, op, value, *more, **named: plain(self, op, change(value), *more, **named),
    )

spoil("reduce", of)
spoil("batch_reduce", lambda pairs: [(of(value), to) for value, to in pairs])
"""
"""Sums of a pair with CPU:3 are incorrect, as if a bridge dropped writes."""

_HANGING_PAIR = """
import ctypes
import tensorflow as tf

plain = tf.GradientTape.gradient

def waiting(self, *args, **kwargs):
    devices = tf.distribute.get_strategy().extended.worker_devices
    if [device[-5:] for device in devices] == ["CPU:0", "CPU:1"]:
        ctypes.PyDLL(None).sleep(600)  # in C, with Python's lock, as NCCL waits
    return plain(self, *args, **kwargs)

tf.GradientTape.gradient = waiting
"""


def run(replicas: int, folder: Path | None = None, defect: str = "", **settings: int) -> SmokeRun:
    """The scenario on CPU devices, with the defect in its processes."""
    where = smoke.context(TF_USE_LEGACY_KERAS="0")
    preload: tuple[str, ...] = ("tensorflow",)
    if folder:
        (folder / "planted_defect.py").write_text(defect, encoding="utf-8")
        where = smoke.context(TF_USE_LEGACY_KERAS="0", PYTHONPATH=str(folder))
        preload = ("tensorflow", "planted_defect")
    (scenario,) = (replace(one, settings=tuple(settings.items())) for one in SCENARIOS if one.id == "smoke.pairs")
    chosen = SmokeSettings(devices_kind="cpu", replicas=replicas, preload=preload)
    result = smoke.run_scenarios([scenario], chosen, where).runs["smoke.pairs"]
    assert isinstance(result, SmokeRun), result
    return result


def only(result: SmokeRun) -> SmokeCase:
    (case,) = result.cases
    return case


@pytest.mark.tensorflow
@pytest.mark.smoke_full
def test_every_pair_of_three_matches_one_cpu() -> None:
    result = run(3)
    case = only(result)
    assert [(pair.first, pair.second, pair.outcome) for pair in case.pairs] == [
        (first, second, "trained") for first, second in combinations(range(3), 2)
    ]
    assert all((pair.weight_deviation or 1.0) < 1e-6 and pair.wrong_values == 0 for pair in case.pairs)
    assert case.measures["tested"] == 3
    assert 0 < (case.measures["slowest_gbs"] or 0) <= (case.measures["fastest_gbs"] or 0)
    assert compute_check(pairs, result).status is Status.PASS


@pytest.mark.smoke_full
def test_device_with_wrong_sums_is_named(tmp_path: Path) -> None:
    result = compute_check(pairs, run(4, tmp_path, _SPOILT_DEVICE))
    assert result.status is Status.FAIL
    (finding,) = (item.finding for item in result.findings)
    assert finding.subject == "CPU:3", finding.observed
    assert "3" in finding.observed


@pytest.mark.smoke_full
def test_hanging_pair_is_ended_with_stacks_and_others_continue(tmp_path: Path) -> None:
    result = run(3, tmp_path, _HANGING_PAIR, least_s=5)
    hung = next(pair for pair in only(result).pairs if (pair.first, pair.second) == (0, 1))
    assert (hung.outcome, "in waiting" in (hung.stacks or "")) == ("timed-out", True)
    judged = compute_check(pairs, result)
    (finding,) = (item.finding for item in judged.findings)
    assert finding.subject == "CPU:0 - CPU:1"


@pytest.mark.smoke_full
def test_unreached_pairs_are_not_tested() -> None:
    result = run(3, patience_s=0)
    assert {pair.outcome for pair in only(result).pairs} == {"not-tested"}
    assert compute_check(pairs, result).status is Status.UNKNOWN
