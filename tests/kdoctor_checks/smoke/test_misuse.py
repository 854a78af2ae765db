from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.misuse import misuse

REFUSED = {"outcome": "raised", "error_type": "InvalidArgumentError", "phase": "train"}


def _run(jit: dict[str, Any], replicas: int = 2) -> SmokeRun:
    two = {"outcome": "raised", "error_type": "RuntimeError", "phase": "train"}
    cases = (smoke_case("jit-compile", replicas, **jit), smoke_case("two-strategies", replicas, **two))
    return smoke_run("smoke.misuse", replicas, *cases)


def test_passes_if_both_are_refused() -> None:
    result = compute_check(misuse, _run(REFUSED))
    assert result.status is Status.PASS
    assert result.evidence[0].observed.startswith("refused: InvalidArgumentError in phase train")


def test_mistake_without_an_error_fails() -> None:
    result = compute_check(misuse, _run({}))
    assert result.status is Status.FAIL
    assert "6 of 6 variables" in result.findings[0].finding.observed


def test_other_errors_and_hangs_fail() -> None:
    assert compute_check(misuse, _run({**REFUSED, "error_type": "MemoryError"})).status is Status.FAIL
    assert compute_check(misuse, _run({**REFUSED, "phase": "strategy"})).status is Status.FAIL
    assert compute_check(misuse, _run({"outcome": "timed-out"})).status is Status.FAIL


def test_is_unknown_without_a_case_and_skipped_on_one_replica() -> None:
    lone = smoke_run("smoke.misuse", 2, smoke_case("jit-compile", 2, **REFUSED))
    assert compute_check(misuse, lone).status is Status.UNKNOWN
    assert compute_check(misuse, _run(REFUSED, 1)).status is Status.SKIP
