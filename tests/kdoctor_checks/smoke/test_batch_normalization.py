from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.batch_normalization import batch_normalization

NAN = Weights(variables=6, mirrored=6, nonfinite=("normalise/gamma",), replicas_agree=True)


def _run(
    plain: dict[str, Any] | None = None, synchronized: dict[str, Any] | None = None, replicas: int = 2
) -> SmokeRun:
    first = smoke_case("plain", replicas, **{"weight_deviation": 0.042, "losses": (1.2, 0.4), **(plain or {})})
    return smoke_run(
        "smoke.batch-normalization", replicas, first, smoke_case("synchronized", replicas, **(synchronized or {}))
    )


def test_plain_may_deviate_but_synchronized_may_not() -> None:
    result = compute_check(batch_normalization, _run())
    assert result.status is Status.PASS
    assert "0.042" in result.evidence[0].observed


@pytest.mark.parametrize(
    ("run", "subject", "decisive"),
    [
        (_run({"weights": NAN, "weight_deviation": None}), "training plain", "normalise/gamma"),
        (_run({"losses": (1.0, None)}), "training plain", "a loss is not finite"),
        (_run(synchronized={"weight_deviation": 0.042}), "training synchronized", "0.042"),
        (_run({"outcome": "raised", "error_type": "ValueError"}), "training plain", "ValueError"),
    ],
)
def test_incorrect_normalization_fails(run: SmokeRun, subject: str, decisive: str) -> None:
    result = compute_check(batch_normalization, run)
    assert result.status is Status.FAIL
    assert result.findings[0].finding.subject == subject
    assert decisive in result.findings[0].finding.observed


def test_is_unknown_without_evidence_and_skipped_on_one_replica() -> None:
    assert compute_check(batch_normalization, _run({"weights": None})).status is Status.UNKNOWN
    assert compute_check(batch_normalization, _run(synchronized={"weight_deviation": None})).status is Status.UNKNOWN
    assert compute_check(batch_normalization, _run(replicas=1)).status is Status.SKIP
