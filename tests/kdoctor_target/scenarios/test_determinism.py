"""Two trainings with the same seed with the real TensorFlow, and with randomness that ignores the seed."""

from dataclasses import replace
from pathlib import Path

import pytest

from helpers import smoke
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.smoke.session import SmokeSettings
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.determinism import determinism

pytestmark = pytest.mark.smoke_full

_CHANCE = """
import os
import tensorflow as tf

plain = tf.keras.layers.Dense.call

def by_chance(self, inputs, *args, **kwargs):
    outputs = plain(self, inputs, *args, **kwargs)
    return outputs * (1.0 + int.from_bytes(os.urandom(4), "big") / 2**32) if self.name == "out" else outputs

tf.keras.layers.Dense.call = by_chance
"""
"""The factor is drawn when the step is traced: one for each training."""


def run(*cases: str, folder: Path | None = None) -> SmokeRun:
    """The given cases of the scenario, with the defect if a folder is given."""
    environ, preload = {"TF_USE_LEGACY_KERAS": "0"}, ["tensorflow"]
    if folder:
        (folder / "planted_defect.py").write_text(_CHANCE, encoding="utf-8")
        environ["PYTHONPATH"] = str(folder)
        preload.append("planted_defect")
    (scenario,) = (replace(one, cases=cases) for one in SCENARIOS if one.id == "smoke.determinism")
    settings = SmokeSettings(devices_kind="cpu", replicas=2, preload=tuple(preload))
    result = smoke.run_scenarios([scenario], settings, smoke.context(**environ)).runs["smoke.determinism"]
    assert isinstance(result, SmokeRun), result
    return result


def test_unseeded_randomness_is_located_by_variable_and_step(tmp_path: Path) -> None:
    found = run("seed", folder=tmp_path)
    result = compute_check(determinism, found)
    assert result.status is Status.FAIL
    # The finding names the three variables that differ the most, which vary.
    assert result.findings[0].finding.observed.count("sequential") == 3
    named = {name.partition("/")[2] for name in found.cases[0].measures if name.startswith("difference of ")}
    assert named == {"hidden/kernel", "hidden/bias", "out/kernel", "out/bias"}
    assert found.cases[0].measures["first_step_apart"] == 1


def test_parallel_map_random_numbers_differ_without_op_determinism() -> None:
    (case,) = run("operations").cases
    name = "random numbers in Dataset.map"
    assert (case.measures[f"{name}: difference"] or 0) > 0.01
    assert case.measures[f"{name}: difference insisting"] == 0
    assert len([key for key in case.measures if key.endswith(": cost")]) == 12
