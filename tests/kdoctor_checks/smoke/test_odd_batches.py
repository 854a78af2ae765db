from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.odd_batches import odd_batches


def _run(
    shares: tuple[float | None, float | None] = (4.0, 8.0), unknown: dict[str, Any] | None = None, replicas: int = 2
) -> SmokeRun:
    measures = {"first_share": shares[0], "shares": shares[1]}
    cases = (
        smoke_case("unknown-size", replicas, **(unknown or {})),
        smoke_case("per-replica-batch", replicas, global_batch=8, measures=measures),
    )
    return smoke_run("smoke.odd-batches", replicas, *cases)


def test_passes_with_the_shares_of_a_batch() -> None:
    result = compute_check(odd_batches, _run())
    assert result.status is Status.PASS
    for part in ("batch of 8", "2 replicas", "4 examples", "8 in total"):
        assert part in result.evidence[1].observed


@pytest.mark.parametrize("shares", [(8.0, 16.0), (4.0, 4.0)], ids=["every replica gets all", "a replica gets none"])
def test_duplicated_or_lost_examples_fail(shares: tuple[float, float]) -> None:
    result = compute_check(odd_batches, _run(shares))
    assert result.status is Status.FAIL
    assert "4" in result.findings[0].finding.expected
    assert f"{shares[0]:.0f} examples" in result.findings[0].finding.observed


@pytest.mark.parametrize(
    ("unknown", "decisive"),
    [({"losses": (1.0, None)}, "loss"), ({"outcome": "raised", "error_type": "E"}, "E in phase")],
)
def test_dataset_of_unknown_size_that_does_not_train_fails(unknown: dict[str, Any], decisive: str) -> None:
    result = compute_check(odd_batches, _run(unknown=unknown))
    assert decisive in result.findings[0].finding.observed


def test_is_unknown_without_evidence_and_skipped_on_one_replica() -> None:
    assert compute_check(odd_batches, _run((None, 8.0))).status is Status.UNKNOWN
    assert compute_check(odd_batches, _run(unknown={"weights": None})).status is Status.UNKNOWN
    assert compute_check(odd_batches, _run(replicas=1)).status is Status.SKIP


def test_first_replica_gets_the_odd_example() -> None:
    shares = {"first_share": 9.0, "shares": 17.0}
    cases = smoke_case("unknown-size", 2), smoke_case("per-replica-batch", 2, global_batch=17, measures=shares)
    assert compute_check(odd_batches, smoke_run("smoke.odd-batches", 2, *cases)).status is Status.PASS
