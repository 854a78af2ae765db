from __future__ import annotations

import re

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke._judging import starves
from kdoctor_checks.smoke.final_batch_sweep import final_batch_sweep

FINITE = {f"tail {tail}": 0.0 for tail in range(1, 17)}
RUINED = {f"tail {tail}": 8.0 for tail in (1, 2, 3, 5, 6, 9)}
"""The tails that leave one of four replicas empty, by the version matrix."""


def _run(
    plain: dict[str, float] | None = None, normalised: dict[str, float] | None = None, replicas: int = 4
) -> SmokeRun:
    given = {"plain": plain or {}, "normalised": RUINED if normalised is None else normalised, "synchronized": {}}
    cases = [smoke_case(name, replicas, measures={**FINITE, **ruined}) for name, ruined in given.items()]
    return smoke_run("smoke.final-batch-sweep", replicas, *cases)


@pytest.mark.parametrize("normalised", [RUINED, {}], ids=["keras 3", "keras 2"])
def test_nan_is_accepted_only_with_an_empty_replica(normalised: dict[str, float]) -> None:
    assert compute_check(final_batch_sweep, _run(normalised=normalised)).status is Status.PASS


@pytest.mark.parametrize("run", [_run({"tail 1": 1.0}), _run(normalised={"tail 4": 1.0})])
def test_nan_without_an_empty_replica_fails(run: SmokeRun) -> None:
    result = compute_check(final_batch_sweep, run)
    assert result.status is Status.FAIL
    assert re.search(r"\[(1|4)\]$", result.findings[0].finding.observed)


def test_is_unknown_without_a_size_and_skipped_on_one_replica() -> None:
    lone = smoke_run("smoke.final-batch-sweep", 4, smoke_case("plain", 4))
    result = compute_check(final_batch_sweep, lone)
    assert (result.status, result.unjudged[0].reason) == (Status.UNKNOWN, "no size was tried")
    assert compute_check(final_batch_sweep, _run(replicas=1)).status is Status.SKIP


def test_starves_matches_a_split_into_chunks() -> None:
    """Compared with the split itself, into chunks of ceil(n / R)."""
    for replicas in range(2, 9):
        for tail in range(1, 4 * replicas + 1):
            chunk = -(-tail // replicas)
            last = range(tail)[(replicas - 1) * chunk : replicas * chunk]
            assert starves(tail, replicas) == (len(last) == 0)
