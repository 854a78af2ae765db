"""Which checks of trainings need several replicas, and what an error counts where fewer were made than requested."""

import pytest

from helpers.facts import environment, gpus, packages, sampling, smoke_case, smoke_run, target
from kdoctor.check import Check
from kdoctor.engine.report import Result
from kdoctor.facts import CaseOutcome, SmokeCase, SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks import checks

OF_PROCESSES = {
    "smoke.across-nodes",
    "smoke.across-nodes-jax",
    "smoke.lost-worker",
    "smoke.multi-worker",
    "smoke.multi-worker-features",
    "smoke.multi-worker-fit",
    "smoke.no-such-device",
    "smoke.parameter-server",
    "smoke.parameter-server-fit",
}
"""They train in several processes, each with one replica."""
OF_ANY_NUMBER = {
    "smoke.baseline",
    "smoke.closed-form",
    "smoke.compute",
    "smoke.compute-jax",
    "smoke.determinism",
    "smoke.one-device",
    "smoke.pairs",
    "smoke.persistence",
    "smoke.same-bits",
    "smoke.same-bits-jax",
    "smoke.speed",
    "smoke.tpu",
}
"""They judge what one device does as well: its numbers, its speed, its files."""
OF_LINKS = "smoke.bandwidth"
OF_TAILS = {"smoke.starved-replica", "smoke.uneven-final-batch"}
"""An error in them counts, because it may be of the empty replica."""
TRAININGS = [check for check in checks() if check.family == "smoke" and check.scenario and check.id != OF_LINKS]


class EveryCase(SmokeRun):
    """A run that has every case, each like the first."""

    def case(self, name: str) -> SmokeCase:
        first = self.cases[0]
        raised = {"phase": "train", "error_type": "ValueError", "error_message": "no"}
        return smoke_case(name, first.replicas or 0, outcome=first.outcome, **raised)


def judged(check: Check, requested: int, outcome: CaseOutcome = "trained") -> Result:
    """The result for trainings that made one replica."""
    run = smoke_run(check.scenario or "", requested, smoke_case("any", 1, outcome=outcome))
    facts = target(), packages(), gpus(2), environment(), sampling(2)
    return compute_check(check, EveryCase(**vars(run)), *facts)


@pytest.mark.parametrize("check", TRAININGS, ids=lambda check: check.id)
def test_one_replica_is_judged_only_where_it_shows_something(check: Check) -> None:
    result = judged(check, 1)
    skipped = (result.status, result.reason) == (Status.SKIP, "the training has only one replica")
    assert skipped == (check.id not in OF_PROCESSES | OF_ANY_NUMBER)


@pytest.mark.parametrize("check", TRAININGS, ids=lambda check: check.id)
def test_error_of_fewer_replicas_than_requested_counts_only_where_one_shows_something(check: Check) -> None:
    counts = check.id in OF_PROCESSES | OF_ANY_NUMBER | OF_TAILS
    result = judged(check, 2, "raised")
    assert result.status is (Status.FAIL if counts else Status.UNKNOWN)
    assert bool(result.findings) == counts
    reasons = [item.reason for item in result.unjudged]
    assert any("made 1 of 2 replicas" in reason for reason in reasons) != counts


def test_links_need_a_training_of_several_replicas_that_ended() -> None:
    check = next(check for check in checks() if check.id == OF_LINKS)
    assert judged(check, 1).reason == "a single replica has no all-reduce"
    assert judged(check, 2, "raised").unjudged[0].reason.startswith("smoke.speed did not finish: ValueError")
