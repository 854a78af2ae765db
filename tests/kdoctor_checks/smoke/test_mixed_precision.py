from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.mixed_precision import mixed_precision


def _run(scale: float | None = 32768.0, single: float | None = 6.0, replicas: int = 2, **changes: Any) -> SmokeRun:
    measures = {"initial_scale": 32768.0, "loss_scale": scale, "variables_float32": single}
    cases = (
        smoke_case("float16", replicas, **{"weight_deviation": 5e-5, "measures": measures, **changes}),
        smoke_case("bfloat16", replicas, weight_deviation=8e-4, measures={**measures, "loss_scale": None}),
    )
    return smoke_run("smoke.mixed-precision", replicas, *cases)


def test_passes_with_a_loss_scale_and_close_weights() -> None:
    result = compute_check(mixed_precision, _run())
    assert result.status is Status.PASS
    assert result.evidence[0].observed.startswith("loss scale 32768;")


@pytest.mark.parametrize(
    ("run", "decisive"),
    [
        (_run(0.25), "0.25"),
        (_run(None), "no loss scale"),
        (_run(single=2.0), "2 of 6"),
        (_run(weight_deviation=0.05), "0.05"),
    ],
)
def test_unstable_precision_fails(run: SmokeRun, decisive: str) -> None:
    result = compute_check(mixed_precision, run)
    assert result.status is Status.FAIL
    assert decisive in result.findings[0].finding.observed


def test_is_unknown_without_evidence_and_skipped_on_one_replica() -> None:
    assert compute_check(mixed_precision, _run(measures={})).status is Status.UNKNOWN
    assert compute_check(mixed_precision, _run(weights=None)).status is Status.UNKNOWN
    assert compute_check(mixed_precision, _run(replicas=1)).status is Status.SKIP


@pytest.mark.parametrize(("loss", "status"), [(0.545, Status.PASS), (0.56, Status.FAIL)])
def test_losses_may_differ_by_a_tenth(loss: float, status: Status) -> None:
    assert compute_check(mixed_precision, _run(reference_losses=(1.0, loss))).status is status
