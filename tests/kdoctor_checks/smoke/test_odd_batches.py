from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
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


def test_passes_and_says_how_a_batch_is_cut() -> None:
    result = compute_check(odd_batches, _run())
    assert result.status is Status.PASS
    assert result.evidence[1].observed == ("of a batch of 8 the first of 2 replicas gets 4 examples, all together 8")


@pytest.mark.parametrize("shares", [(8.0, 16.0), (4.0, 4.0)], ids=["every replica gets all", "a replica gets none"])
def test_fails_where_examples_are_doubled_or_lost(shares: tuple[float, float]) -> None:
    result = compute_check(odd_batches, _run(shares))
    assert result.status is Status.FAIL
    assert result.findings[0].finding.expected == "4 for the first, 8 together"


@pytest.mark.parametrize(
    ("unknown", "words"),
    [({"losses": (1.0, None)}, "the loss does not fall"), ({"outcome": "raised", "error_type": "E"}, "E in phase")],
)
def test_fails_where_a_data_set_of_unknown_size_does_not_train(unknown: dict[str, Any], words: str) -> None:
    result = compute_check(odd_batches, _run(unknown=unknown))
    assert words in result.findings[0].finding.observed


def test_is_unknown_without_evidence_and_skipped_on_one_replica() -> None:
    assert compute_check(odd_batches, _run((None, 8.0))).status is Status.UNKNOWN
    assert compute_check(odd_batches, _run(unknown={"weights": None})).status is Status.UNKNOWN
    assert compute_check(odd_batches, _run(replicas=1)).status is Status.SKIP
