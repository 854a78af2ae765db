from __future__ import annotations

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.other_random_layers import other_random_layers

DIFFERENT = {"steps": 3.0, "equal RandomZoom": 0.0, "repeats RandomZoom": 1.0}


def _run(replicas: int = 2, **measures: float) -> SmokeRun:
    renamed = {name.replace("_", " "): value for name, value in measures.items()}
    cases = [smoke_case(name, replicas, measures=DIFFERENT) for name in ("noise", "colors", "seed-per-replica")]
    changed = smoke_case("augmentation", replicas, measures={**DIFFERENT, **renamed})
    return smoke_run("smoke.other-random-layers", replicas, *cases, changed)


def test_different_numbers_pass() -> None:
    assert compute_check(other_random_layers, _run()).status is Status.PASS
    assert compute_check(other_random_layers, _run(replicas=1)).status is Status.SKIP


def test_equal_numbers_are_a_warning_with_the_layer() -> None:
    result = compute_check(other_random_layers, _run(equal_RandomZoom=3.0))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    (found,) = [item.finding for item in result.findings]
    assert found.subject == "training augmentation"
    assert "RandomZoom" in found.observed
    assert "job.random-layers" in found.explained_by


def test_flips_that_are_equal_by_chance_pass() -> None:
    assert compute_check(other_random_layers, _run(equal_RandomZoom=1.0)).status is Status.PASS


def test_seed_that_does_not_repeat_fails() -> None:
    result = compute_check(other_random_layers, _run(repeats_RandomZoom=0.0))
    assert "same seed" in result.findings[0].finding.observed


def test_is_unknown_without_measures() -> None:
    assert compute_check(other_random_layers, _run(steps=0.0)).status is Status.UNKNOWN


@pytest.mark.parametrize(("equal", "same"), [(3.0, 1.0), (0.0, 0.0)], ids=["replicas", "seed"])
def test_first_six_layers_are_named(equal: float, same: float) -> None:
    layers = [f"Random{number}" for number in range(7)]
    measures = {f"equal_{name}": equal for name in layers} | {f"repeats_{name}": same for name in layers}
    (found,) = compute_check(other_random_layers, _run(2, **measures)).findings
    assert "Random0, Random1, Random2, Random3, Random4, Random5 and 1 more" in found.finding.observed


def test_replicas_and_steps_are_counted() -> None:
    (found,) = compute_check(other_random_layers, _run(steps=1.0, equal_RandomZoom=1.0)).findings
    assert found.finding.observed == "the same numbers on 2 replicas in all 1 step: RandomZoom (keras 3.15.1)"
