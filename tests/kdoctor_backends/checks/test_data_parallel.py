from typing import Any

from helpers.comparison_checks import ComparisonCheck
from helpers.facts import smoke_case, smoke_run
from kdoctor.model import Action, Status
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.data_parallel import data_parallel

ON_JAX: dict[str, Any] = {"tensorflow": None, "jax": "0.10.2"}


class TestDataParallel(ComparisonCheck):
    check = data_parallel
    scenario = "smoke.data-parallel"
    cases = ("fit", "batch-normalization", "smaller-tail")

    def test_is_skipped_on_one_device(self) -> None:
        assert compute_check(self.check, self.run(replicas=1)).status is Status.SKIP


def test_does_not_require_tensorflow() -> None:
    assert data_parallel.requires == ()


def test_finding_names_jax_and_does_not_advise_another_keras() -> None:
    different = smoke_run(
        "smoke.data-parallel", 2, smoke_case("fit", 2, weight_deviation=0.18), keras="keras 3.5.0", **ON_JAX
    )
    finding = compute_check(data_parallel, different).findings[0].finding
    assert finding.observed.endswith("(keras 3.5.0 on JAX 0.10.2, 2 devices)")
    assert finding.remedy.action is Action.CHANGE_CODE
    assert "keras 3.5.0" in finding.remedy.summary


def test_error_names_the_incompatible_versions() -> None:
    raised = smoke_case("fit", 2, outcome="raised", error_type="TypeError", error_message="no", phase="trace")
    finding = compute_check(data_parallel, smoke_run("smoke.data-parallel", 2, raised, **ON_JAX)).findings[0].finding
    assert finding.observed == "TypeError in phase trace: no"
    assert "2 devices" in finding.expected
    assert "JAX 0.10.2" in finding.remedy.summary
    assert "keras 3.15.1" in finding.remedy.summary


def test_fewer_devices_than_requested_are_unknown() -> None:
    fewer = smoke_run("smoke.data-parallel", 4, *(smoke_case(name, 2) for name in TestDataParallel.cases), **ON_JAX)
    result = compute_check(data_parallel, fewer)
    assert result.status is Status.UNKNOWN
    assert "2 of 4 replicas" in str(result)
