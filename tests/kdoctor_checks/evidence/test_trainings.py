"""No check of a training passes if its number of replicas, or whether they agree, is not known."""

from dataclasses import replace

import pytest

from helpers.evidence.machines import MACHINE
from helpers.facts import smoke_case, smoke_run
from kdoctor.catalog.load import load_catalog
from kdoctor.check import Check
from kdoctor.facts import SmokeCase, Weights
from kdoctor.model import Status
from kdoctor.testing import compute_check

CATALOG = load_catalog()
WITHOUT_REPLICAS = {"smoke.multi-worker-fit", "smoke.one-device", "smoke.tpu"}
"""They train on one device, or in processes that report their own ends."""
WITHOUT_WEIGHTS = {"gpu.replicas-match"}


def status(check: Check, **changes: object) -> Status:
    scenario = CATALOG.scenarios[check.scenario or ""]
    cases = (replace(smoke_case(replicas=8), name=name, **changes) for name in scenario.cases)  # type: ignore[arg-type]
    return compute_check(check, *MACHINE, smoke_run(scenario.id, 8, *cases)).status


PASSING = [check for check in CATALOG.checks.values() if check.scenario and status(check) is Status.PASS]


def test_many_checks_pass() -> None:
    assert len(PASSING) > 15


@pytest.mark.parametrize("check", PASSING, ids=lambda check: check.id)
def test_training_with_an_unknown_number_of_replicas_does_not_pass(check: Check) -> None:
    assert (status(check, replicas=None) is Status.PASS) == (check.id in WITHOUT_REPLICAS)


@pytest.mark.parametrize("check", PASSING, ids=lambda check: check.id)
def test_training_whose_replicas_were_not_compared_does_not_pass(check: Check) -> None:
    weights: Weights | None = smoke_case(replicas=8).weights
    assert weights is not None
    found = status(check, weights=replace(weights, replicas_agree=None))
    assert (found is Status.PASS) == (check.id in WITHOUT_WEIGHTS)


@pytest.mark.parametrize("check", PASSING, ids=lambda check: check.id)
def test_one_replica_is_not_compared_with_itself(check: Check) -> None:
    case: SmokeCase = smoke_case(replicas=1)
    scenario = CATALOG.scenarios[check.scenario or ""]
    cases = (replace(case, name=name) for name in scenario.cases)
    found = compute_check(check, *MACHINE, smoke_run(scenario.id, 1, *cases)).status
    assert found is not Status.PASS or check.id in WITHOUT_REPLICAS | WITHOUT_WEIGHTS
